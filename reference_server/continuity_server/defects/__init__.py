"""Defects: the same server with one rule broken, one small override each. They are the proof that the checks can fail."""

from continuity_server.defects import derive, echo, history
from continuity_server.defects.registry import DEFECTS, Defect

__all__ = ["DEFECTS", "Defect", "derive", "echo", "history", "listed"]


def listed() -> list[dict[str, object]]:
    """All defects, as `--defects` shows them."""
    return [found.as_json() for found in DEFECTS.values()]

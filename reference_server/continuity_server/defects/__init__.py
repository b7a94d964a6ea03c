"""Defects: the same server with one rule broken, one small override each. They are the proof that the checks can fail."""

from continuity_server.defects import compress, derive, echo, env, history, migrate, slug
from continuity_server.defects.registry import DEFECTS, Defect

__all__ = ["DEFECTS", "Defect", "compress", "derive", "echo", "env", "history", "listed", "migrate", "slug"]


def listed() -> list[dict[str, object]]:
    """All defects, as `--defects` shows them."""
    return [found.as_json() for found in DEFECTS.values()]

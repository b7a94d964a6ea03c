"""Defects: the same server with one rule broken, one small override each. They are the proof that the checks can fail."""

from continuity_server.defects import (
    compress,
    concur,
    contract,
    delete,
    derive,
    discover,
    durable,
    echo,
    env,
    error,
    history,
    isolate,
    migrate,
    slug,
    stream,
)
from continuity_server.defects.registry import DEFECTS, Defect

__all__ = [
    "DEFECTS",
    "Defect",
    "compress",
    "concur",
    "contract",
    "delete",
    "derive",
    "discover",
    "durable",
    "echo",
    "env",
    "error",
    "history",
    "isolate",
    "listed",
    "migrate",
    "slug",
    "stream",
]


def listed() -> list[dict[str, object]]:
    """All defects, as `--defects` shows them."""
    return [found.as_json() for found in DEFECTS.values()]

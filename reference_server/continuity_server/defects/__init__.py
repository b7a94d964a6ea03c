"""Defects: the same server with one behaviour broken. Each overrides the method where the behaviour is.

They are the proof that the checks can fail. Only the composition root (`server.py`) imports them.
"""

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
    responses,
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
    "migrate",
    "responses",
    "slug",
    "stream",
]

"""Sets of options that have every value of every option between them.

Options are independent of each other, so that a few whole runs serve; values that only show together (an alias of a derived session, a derived session compressed in
place) stand in one set.
"""

from collections.abc import Mapping
from typing import Final

OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "default": {},
    "other": {
        "derivation": "content-v2",
        "echo": "alias",
        "degraded": "refuse",
        "turns": "reject",
        "environment": "per-session",
    },
    "in place": {"compaction": "in-place"},
    "least": {"derivation": "none", "environment": "none"},
}

"""Sets of options for the reference server. Together they contain every value of every option but `tells: nothing`, under which much cannot be observed.

Options are independent of each other, so a few whole runs are enough. Values that matter only in combination (an alias of a derived session, a derived session
that is compressed in place) are in one set.
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
    "least": {"derivation": "none", "environment": "none", "announces": "event"},
}

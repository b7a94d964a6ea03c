"""Where the kit keeps what outlives a run: in the user's cache, not in the folder that they happen to be in."""

import os
from collections.abc import Mapping
from pathlib import Path


def user_cache(environ: Mapping[str, str] = os.environ) -> Path:
    base = environ.get("XDG_CACHE_HOME") or environ.get("LOCALAPPDATA") or str(Path.home() / ".cache")
    return Path(base) / "session-continuity"

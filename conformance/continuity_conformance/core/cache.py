"""The folder for files that outlive a run: the user's cache, not the current folder."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_NAME: Final = "session-continuity"


def user_cache(environ: Mapping[str, str] = os.environ) -> Path:
    """The kit's folder in the user's cache. XDG_CACHE_HOME names another cache on every system."""
    if environ.get("XDG_CACHE_HOME"):
        return Path(environ["XDG_CACHE_HOME"]) / _NAME
    from platformdirs import user_cache_path  # noqa: PLC0415 - many commands never ask for the folder

    return user_cache_path(_NAME, appauthor=False, opinion=False)

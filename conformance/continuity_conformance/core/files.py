"""Atomic writes: a reader sees the old file or the new one, never half of one."""

import os
import tempfile
from pathlib import Path


def replace_file(path: Path, text: str, *, executable: bool = False) -> None:
    """Write a new file next to the old one, then rename it over the old one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        # mkstemp gives 0600, but others read a report: a CI upload, a web server.
        Path(name).chmod(0o755 if executable else 0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise

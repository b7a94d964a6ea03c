"""A file that is there whole or not at all: a reader never finds half of one."""

import os
import tempfile
from pathlib import Path


def replace_file(path: Path, text: str, *, executable: bool = False) -> None:
    """Write beside the old file and then over it, so that at any moment one of the two is there."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        # mkstemp gives 0600; a report is read by others (a CI upload, a web server).
        Path(name).chmod(0o755 if executable else 0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise

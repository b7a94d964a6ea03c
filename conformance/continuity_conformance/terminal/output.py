"""Output of the commands: text and JSON that any terminal can show, whatever its encoding."""

import json
import shutil
import sys
from collections.abc import Iterable
from typing import Final

_ASCII: Final = str.maketrans({"·": "-"})
"""One column for one column, so that the layout stays."""


def width() -> int:
    return shutil.get_terminal_size().columns


def say(text: str) -> None:
    encoding = sys.stdout.encoding
    shown = text if _has_unicode() else text.translate(_ASCII)
    sys.stdout.write(f"{shown}\n".encode(encoding, "backslashreplace").decode(encoding))


def say_json(data: object) -> None:
    """Write JSON; characters that the encoding lacks are escaped."""
    say(json.dumps(data, ensure_ascii=not _has_unicode(), indent=2))


def warn(errors: Iterable[Exception]) -> None:
    """Write one line on stderr for each error that does not stop the command."""
    for error in errors:
        sys.stderr.write(f"continuity: {error}\n")


def _has_unicode() -> bool:
    return sys.stdout.encoding.lower().startswith("utf")

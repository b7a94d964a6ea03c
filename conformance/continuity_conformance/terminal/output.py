"""What the commands write: text and JSON that any terminal can take, whatever its encoding."""

import json
import shutil
import sys
from collections.abc import Iterable
from typing import Final

_PLAINER: Final = str.maketrans({"·": "-"})
"""One column for one column, so that nothing gets wider than it was laid out."""


def width() -> int:
    return shutil.get_terminal_size().columns


def say(text: str) -> None:
    encoding = sys.stdout.encoding
    plainer = text if _universal() else text.translate(_PLAINER)
    sys.stdout.write(f"{plainer}\n".encode(encoding, "backslashreplace").decode(encoding))


def complain(troubles: Iterable[Exception]) -> None:
    """A line for each thing that is wrong and stops nobody."""
    for trouble in troubles:
        sys.stderr.write(f"continuity: {trouble}\n")


def say_json(data: object) -> None:
    """Write JSON that reads the same in every encoding: letters where the terminal has them, escapes where not."""
    say(json.dumps(data, ensure_ascii=not _universal(), indent=2))


def _universal() -> bool:
    return sys.stdout.encoding.lower().startswith("utf")

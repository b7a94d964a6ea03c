r"""Make text from a server safe to show, and shorten it.

Characters that control a terminal, reorder a line or break XML are shown as an escape such as `\u202e`. This is done once, when
results.json is read, so that no report format can forget it.
"""

import re
import textwrap
from typing import Any, Final

WIDTH: Final = 80
"""The columns of a terminal that everything fits into."""
_UNSAFE: Final = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, which include terminal escapes; tab and line feed stay
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # they change the direction of the text around them
    "\u2028\u2029"  # line ends that some programs do not know
    "\ud800-\udfff"  # lone surrogates, which cannot be encoded
    "\ufdd0-\ufdef\ufffe\uffff"  # not characters, and some are not allowed in XML
    "]"
)

_LEFT_OUT: Final = re.compile(r" … \((\d{1,12}) characters left out\) … ")


def visible(value: Any) -> Any:
    """A copy of JSON data with every unsafe character escaped."""
    if isinstance(value, str):
        return _UNSAFE.sub(_escape, value)
    if isinstance(value, dict):
        return {visible(key): visible(inner) for key, inner in value.items()}
    return [visible(inner) for inner in value] if isinstance(value, list) else value


def one_line(text: str) -> str:
    return " ".join(text.split())


def wrapped(text: str, indent: str) -> list[str]:
    """The lines of a paragraph for the terminal. Ids and addresses are not broken."""
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def without_middle(text: str, length: int) -> str:
    """Shorten a text to its head and tail: the end of a stream is often the important part.

    The note in the middle counts the characters that are left out, including those of an earlier note.
    """
    if len(text) <= length:
        return text
    head = length // 4
    middle, tail = text[head : head - length], text[head - length :]
    before = sum(int(number) for number in _LEFT_OUT.findall(middle))
    return f"{text[:head]} … ({len(_LEFT_OUT.sub('', middle)) + before} characters left out) … {tail}"


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"

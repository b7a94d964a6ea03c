"""Text from a server, made visible: what would act on a terminal, reorder a line or break XML is shown as what it is.

Done once, where results.json is read, so that no format can forget it. In JSON strings the form is the character itself: `\u202e`.
"""

import re
from typing import Any, Final

_ACTING: Final = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, terminal escapes among them; tab and line feed stay
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # they reorder what stands around them
    "\u2028\u2029"  # line ends that not every reader knows
    "\ud800-\udfff"  # lone surrogates: no encoding has them
    "\ufdd0-\ufdef\ufffe\uffff"  # no characters, and not allowed in XML
    "]"
)

_LEFT_OUT: Final = re.compile(r" … \((\d{1,12}) characters left out\) … ")


def visible(value: Any) -> Any:
    """The same data, with every string in it harmless."""
    if isinstance(value, str):
        return _ACTING.sub(_escape, value)
    if isinstance(value, dict):
        return {visible(key): visible(inner) for key, inner in value.items()}
    return [visible(inner) for inner in value] if isinstance(value, list) else value


def one_line(text: str) -> str:
    return " ".join(text.split())


def cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def without_middle(text: str, length: int) -> str:
    """Head and tail: of a stream, how it ended is often the point. What is left out is counted, also what was left out before."""
    if len(text) <= length:
        return text
    head = length // 4
    middle, tail = text[head : head - length], text[head - length :]
    before = sum(int(number) for number in _LEFT_OUT.findall(middle))
    return f"{text[:head]} … ({len(_LEFT_OUT.sub('', middle)) + before} characters left out) … {tail}"


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"

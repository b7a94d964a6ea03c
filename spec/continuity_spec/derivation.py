r"""The derived id: what a conversation is called where its client names no session (DERIVE-04 to -09, -12).

    content-v1   `api-`  + 16 hex digits of SHA-256 over UTF-8(system prompt + "\n" + first user message)
    content-v2   `api2-` + 32 hex digits of SHA-256 over UTF-8([system prompt, first user message] as RFC 8785 JSON)

Pure functions of the messages of a chat request. They know neither HTTP nor principals nor stored sessions, and
refuse nothing: messages that a server must answer 400 are not their affair.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Mapping, Sequence

Message = Mapping[str, object]

_SYSTEM_ROLES = frozenset({"system", "developer"})
_TEXT_PARTS = frozenset({"text", "input_text"})


class UnknownDerivationError(ValueError):
    """A derivation that makes no id from content, or that nobody has defined."""

    def __init__(self, version: str) -> None:
        super().__init__(f'derivation "{version}" derives no id; use one of: {", ".join(_DERIVATIONS)}')


class NoUserMessageError(ValueError):
    """Messages that cannot be salted, because the salt has its place in the first user message."""

    def __init__(self) -> None:
        super().__init__("messages without a user message cannot be salted; add a message with the role user")


def derive(version: str, messages: Sequence[Message]) -> str:
    """Give the id of the session that these messages open, by `content-v1` or `content-v2`."""
    if version not in _DERIVATIONS:
        raise UnknownDerivationError(version)
    return _DERIVATIONS[version](*opening(messages))


def opening(messages: Sequence[Message]) -> tuple[str, str]:
    """Find the system prompt and the first user message: all that a derived id depends on.

    Without a user message the second is empty, and every system message counts, as none comes later than it.
    """
    before = list(itertools.takewhile(lambda message: message.get("role") != "user", messages))
    first_user = messages[len(before)].get("content") if len(before) < len(messages) else ""
    # DERIVE-08: several are joined in order, and `developer` counts as one of them.
    prompts = [_text(message.get("content")) for message in before if message.get("role") in _SYSTEM_ROLES]
    return "\n".join(prompts), _text(first_user)


def salted(messages: Sequence[Message], salt: str) -> list[Message]:
    """Put the salt into the first text of the first user message, so that the id is a new one.

    It stands before the first letter or digit: what a vector says about the two ends of a text (blanks, byte order
    marks, quotes) and about a letter with its accent is still said. Where there is neither letter nor digit it
    stands at the end, and where there is no text it becomes one.
    """
    index = next((i for i, message in enumerate(messages) if message.get("role") == "user"), None)
    if index is None:
        raise NoUserMessageError
    first_user = messages[index]
    changed = {**first_user, "content": _salted_content(first_user.get("content"), salt)}
    return [*messages[:index], changed, *messages[index + 1 :]]


def _text(content: object) -> str:
    # DERIVE-07: a string equals one text part; several text parts are joined by "\n"; other parts do not count.
    if isinstance(content, str):
        return content
    return "\n".join(str(part["text"]) for part in _parts(content) if _is_text(part))


def _parts(content: object) -> list[Mapping[str, object]]:
    return [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []


def _is_text(part: Mapping[str, object]) -> bool:
    kind = part.get("type")
    return isinstance(kind, str) and kind in _TEXT_PARTS and isinstance(part.get("text"), str)


def _salted_content(content: object, salt: str) -> object:
    if not isinstance(content, list):
        return _salted_text(_text(content), salt)
    parts = list(content)
    for index, part in enumerate(parts):
        if isinstance(part, Mapping) and _is_text(part):
            parts[index] = {**part, "text": _salted_text(str(part["text"]), salt)}
            return parts
    return [*parts, {"type": "text", "text": salt}]


def _salted_text(text: str, salt: str) -> str:
    place = next((i for i, character in enumerate(text) if character.isalnum()), len(text))
    return text[:place] + salt + text[place:]


def _content_v1(system: str, first_user: str) -> str:
    return "api-" + _sha256(system + "\n" + first_user)[:16]


def _content_v2(system: str, first_user: str) -> str:
    # For an array of two strings this is RFC 8785 to the byte: no numbers, no keys to sort, and section 3.2.2.2 asks
    # for the escapes that Python writes when it is not told to keep to ASCII.
    canonical = json.dumps([system, first_user], ensure_ascii=False, separators=(",", ":"))
    return "api2-" + _sha256(canonical)[:32]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


_DERIVATIONS: Mapping[str, Callable[[str, str], str]] = {"content-v1": _content_v1, "content-v2": _content_v2}

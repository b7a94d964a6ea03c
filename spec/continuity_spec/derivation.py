r"""Derive the session id of a chat request that names no session (DERIVE-04 to -09, -12).

    content-v1   `api-`  + 16 hex digits of SHA-256 over UTF-8(system prompt + "\n" + first user message)
    content-v2   `api2-` + 32 hex digits of SHA-256 over UTF-8([system prompt, first user message] as RFC 8785 JSON)

The system prompt of content-v1 is that of Hermes: all `system` messages of the request, and no `developer` message. That of
content-v2 is what comes before the first user message, `developer` messages included.

Pure functions of the messages of a chat request. They know neither HTTP nor principals nor stored sessions, and do not
validate: messages that a server must refuse with 400 are not detected here.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence

Message = Mapping[str, object]

_SYSTEM_ROLES = frozenset({"system", "developer"})
_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})


class UnknownDerivationError(ValueError):
    """No derivation of this name derives an id from content."""

    def __init__(self, version: str) -> None:
        super().__init__(f'derivation "{version}" derives no id; use one of: {", ".join(_DERIVATIONS)}')


class NoUserMessageError(ValueError):
    """Messages without a user message cannot be salted."""

    def __init__(self) -> None:
        super().__init__("messages without a user message cannot be salted; add a message with the role user")


def derive(version: str, messages: Sequence[Message]) -> str:
    """Derive the id of the session that these messages start, by `content-v1` or `content-v2`."""
    system, first_user = opening(version, messages)
    return _DERIVATIONS[version][1](system, first_user)


def opening(version: str, messages: Sequence[Message]) -> tuple[str, str]:
    """Find the system prompt and the first user message. A derived id depends on nothing else.

    Without a user message the second text is empty, and all system messages count.
    """
    if version not in _DERIVATIONS:
        raise UnknownDerivationError(version)
    return _DERIVATIONS[version][0](messages), _text(_first_user(messages).get("content"))


def defines(version: str, messages: Sequence[Message]) -> bool:
    """True if the derivation defines the id of these messages.

    content-v1 does not if the first user message has a part that is no text, such as an image.
    """
    parts = _parts(_first_user(messages).get("content"))
    return version != "content-v1" or all(_is_text(part) for part in parts)


def _first_user(messages: Sequence[Message]) -> Message:
    return next((message for message in messages if message.get("role") == "user"), {})


def _prompt_v1(messages: Sequence[Message]) -> str:
    return _joined(message for message in messages if message.get("role") == "system")


def _prompt_v2(messages: Sequence[Message]) -> str:
    # DERIVE-08: a `developer` message counts, and what comes after the first user message does not.
    before = itertools.takewhile(lambda message: message.get("role") != "user", messages)
    return _joined(message for message in before if message.get("role") in _SYSTEM_ROLES)


def _joined(prompts: Iterable[Message]) -> str:
    return "\n".join(_text(message.get("content")) for message in prompts)


def salted(messages: Sequence[Message], salt: str) -> list[Message]:
    """Insert the salt into the first text of the first user message, so that the derived id is new.

    The salt goes before the first letter or digit. The message then still tests what its vector is about: spaces, byte
    order marks or quotes at either end, or a letter with a combining accent. If there is no letter or digit, the salt
    goes to the end of the text; if there is no text, the salt becomes the text.
    """
    index = next((i for i, message in enumerate(messages) if message.get("role") == "user"), None)
    if index is None:
        raise NoUserMessageError
    first_user = messages[index]
    changed = {**first_user, "content": _salted_content(first_user.get("content"), salt)}
    return [*messages[:index], changed, *messages[index + 1 :]]


def _text(content: object) -> str:
    # DERIVE-07: a string equals one text part; several text parts are joined by "\n"; empty and other parts do not count.
    if isinstance(content, str):
        return content
    return "\n".join(str(part["text"]) for part in _parts(content) if _is_text(part) and part["text"])


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
    at = next((i for i, character in enumerate(text) if character.isalnum()), len(text))
    return text[:at] + salt + text[at:]


def _content_v1(system: str, first_user: str) -> str:
    return "api-" + _sha256(system + "\n" + first_user)[:16]


def _content_v2(system: str, first_user: str) -> str:
    # For a list of two strings this is exactly RFC 8785: there are no numbers and no keys to sort, and section 3.2.2.2
    # demands the escapes that json.dumps writes with ensure_ascii=False.
    canonical = json.dumps([system, first_user], ensure_ascii=False, separators=(",", ":"))
    return "api2-" + _sha256(canonical)[:32]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


_Prompt = Callable[[Sequence[Message]], str]
_DERIVATIONS: Mapping[str, tuple[_Prompt, Callable[[str, str], str]]] = {
    "content-v1": (_prompt_v1, _content_v1),
    "content-v2": (_prompt_v2, _content_v2),
}

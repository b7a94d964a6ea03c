"""The built-in model: it answers at once, and lists in a bracket what it was sent, because nobody can read its log.

A mark is `[u:7f3a9b21]` in a user's text, `[s:…]` in a system prompt, `[a:7f3a9b21#17 saw …]` in an answer, `[sum#18 covers …]` in a summary. One bracket is
one token. It is a model like any other: it is sent messages and knows nothing else.
"""

import itertools
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from continuity_server.model.types import Call, OnText, Reply, Usage
from continuity_server.rules.messages import TEXT_PARTS, Message

_BRACKET: Final = re.compile(
    r"\[(?:(?P<kind>[us]):(?P<mark>[0-9a-f]{8})|(?P<answer>a:(?:[0-9a-f]{8}|-)#\d+)(?: saw [^\]]*)?"
    r"|(?P<summary>sum#\d+)(?: covers (?P<covers>[^\]]*))?)\]"
)
_NATURAL_ROLES: Final = {"u": ("user",), "a": ("assistant",), "s": ("system", "developer")}
_MOST_TOKENS: Final = 200
_CHARACTERS_A_TOKEN: Final = 4

Bracket = tuple[Message, re.Match[str]]


class BuiltinModel:
    """Answers every call with a short sentence and its bracket."""

    def __init__(self) -> None:
        # Numbers of two processes differ, so that an answer from before a restart is not taken for one from after it.
        self._numbers = itertools.count(1 + 1000 * secrets.randbelow(1000))

    async def close(self) -> None:
        pass

    async def ask(self, call: Call, on_text: OnText | None = None) -> Reply:
        texts = [_text(message) for message in call.messages]
        text = self._answer(call.messages, texts)
        if on_text is not None:
            for piece in re.findall(r"\S+\s*", text):
                await on_text(piece)
        prompt = sum(map(len, texts)) // _CHARACTERS_A_TOKEN
        return Reply(text, usage=Usage(prompt + 1, len(text) // _CHARACTERS_A_TOKEN))

    def _answer(self, messages: Sequence[Message], texts: Sequence[str]) -> str:
        number = next(self._numbers)
        brackets = list(_brackets(messages, texts))
        if texts and "summar" in texts[0].lower():
            return f"This is what was said. [sum#{number} covers {_listed(_covered(brackets))}]"
        return f"Noted. [a:{_newest(brackets)}#{number} saw {_listed(_seen(brackets))}]"


def _listed(tokens: Iterable[str]) -> str:
    names = list(tokens)
    return " ".join(names if len(names) <= _MOST_TOKENS else [*names[: _MOST_TOKENS - 1], "..."])


def _seen(brackets: Iterable[Bracket]) -> Iterator[str]:
    for message, match in brackets:
        if match["summary"]:
            covers = (match["covers"] or "").split()
            yield f"{match['summary']}({','.join(covers)})"
        else:
            yield _token(message, match)


def _covered(brackets: Iterable[Bracket]) -> Iterator[str]:
    """List what a summary covers: whatever was in its call, through earlier summaries too."""
    for message, match in brackets:
        if match["summary"]:
            yield from (match["covers"] or "").split()
        else:
            yield _token(message, match)


def _token(message: Message, match: re.Match[str]) -> str:
    """Name a mark; in a message of another role than its natural one, with that role."""
    token = match["answer"] or f"{match['kind']}:{match['mark']}"
    role = message.get("role", "")
    return token if role in _NATURAL_ROLES[token[0]] else f"{token}@{role}"


def _newest(brackets: Sequence[Bracket]) -> str:
    users = (
        match["mark"] for message, match in reversed(brackets) if match["kind"] == "u" and message["role"] == "user"
    )
    return next(users, "-")


def _brackets(messages: Sequence[Message], texts: Sequence[str]) -> Iterator[Bracket]:
    for message, text in zip(messages, texts, strict=True):
        if "[" in text:
            yield from ((message, match) for match in _BRACKET.finditer(text))


def _text(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content if part.get("type") in TEXT_PARTS)
    return content if isinstance(content, str) else ""

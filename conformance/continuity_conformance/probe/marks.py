"""Marks: short random tags in texts. They identify a turn in the messages that a model receives.

A user text of the kit carries `[u:7f3a9b21]`, a system prompt `[s:7f3a9b21]`, an answer of the model `[a:7f3a9b21#17]` (the newest user
mark and the number of the model call), a summary `[sum#18]`. A model without a readable log can write inside the bracket what it saw:
`[a:7f3a9b21#17 saw u:7f3a9b21]`, `[sum#18 covers u:7f3a9b21]`. A bracket is one mark: marks inside it do not count on their own.
"""

import functools
import itertools
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

_OF_TURNS: Final = frozenset({"user", "answer", "summary"})
Messages = Sequence[Mapping[str, object]]

SAME_CALL: Final = "call_1"
"""The id of tool calls that the probe numbers anew in each reply. It says nothing about which call it is."""
DEFAULT_PATTERN: Final = "summar"
"""The pattern where the profile has none of its own."""
_REQUEST: Final = re.compile(
    r"(?:summari[sz]|condens|distil+|abridg)(?:e|es|ing|er|ation)?\b|compact(?:ing)? (?:the|this|all|your|earlier|previous|a conv)|(?:conversation|context) (?:compact|compress)(?:ion|or)\b"
    r"|(?:writ|creat|mak|produc|generat|provid|updat|return|giv)\w*\b[^.\n]{0,80}\b(?:summar(?:y|ies)|recap|digest)\b",
    re.IGNORECASE,
)
"""Asks for a summary; a heading such as "Summary of the conversation so far" does not."""
_MENTION: Final = re.compile(r"summar|condens|distil|abridg|recap|compact|compress", re.IGNORECASE)
_DIGITS: Final = re.compile(r"\d+")
_AROUND: Final = 60
"""How many characters on either side of a word are compared with what was learned."""
_INSTRUCTING: Final = frozenset({"system", "developer", "user"})

_MARKS: Final = 1 << 32
_STRIDE: Final = 0x9E3779B1
"""Odd, so that the products of 2^32 numbers are all different; and large, so that marks that follow each other look nothing alike."""
_NUMBERS: Final = itertools.count(secrets.randbelow(_MARKS))

Kind = Literal["user", "answer", "system", "summary", "text", "call", "result"]

_BRACKET = re.compile(
    r"\[(?:u:(?P<user>[0-9a-f]{8})|s:(?P<system>[0-9a-f]{8})"
    r"|a:(?P<answer>[0-9a-f]{8}|-)#(?P<call>\d+)(?: saw (?P<saw>[^\]]*))?"
    r"|sum#(?P<summary>\d+)(?: covers (?P<covers>[^\]]*))?)\]"
)
_TOKEN = re.compile(
    r"(?:u:(?P<user>[0-9a-f]{8})|s:(?P<system>[0-9a-f]{8})|a:(?P<answer>[0-9a-f]{8}|-)#(?P<call>\d+)"
    r"|sum#(?P<summary>\d+)(?:\((?P<covers>[^)]*)\))?)(?:@(?P<role>\w+))?"
)
_USUAL_ROLE: Mapping[Kind, str] = {"user": "user", "answer": "assistant", "system": "system", "summary": "user"}


@dataclass(frozen=True, slots=True)
class Sighting:
    """One item in the messages that a model received: a mark, a text without a mark, a tool call, or a tool result."""

    kind: Kind
    role: str
    mark: str = ""
    call: int = 0
    covers: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class AnswerMark:
    """The content of an answer's mark: the turn it answers, the number of the model call and, if present, what the model saw."""

    mark: str
    call: int
    saw: str | None


def new_mark() -> str:
    """Make a mark that this process has never made before. Of 24,000 random ones, two would be equal in one campaign of fifteen."""
    return f"{next(_NUMBERS) * _STRIDE % _MARKS:08x}"


def user_text(mark: str, words: str) -> str:
    return f"[u:{mark}] {words}"


def system_text(mark: str, words: str) -> str:
    return f"[s:{mark}] {words}"


def answer_text(mark: str, call: int, *, outside_ascii: bool = False) -> str:
    # U+2028 separates lines in some programs, but not in an event stream.
    end = "…\u2028" if outside_ascii else "."
    return f"Noted{end} [a:{mark}#{call}]"


def summary_text(call: int) -> str:
    return f"What was said so far. [sum#{call}]"


def content_text(content: object) -> str:
    """The text of a message's content: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return ""


def estimated_tokens(messages: Messages) -> int:
    """Four characters a token."""
    return sum(len(content_text(message.get("content"))) for message in messages) // 4 + 1


@functools.lru_cache(maxsize=4096)
def answer_mark(text: str, expected: str = "") -> AnswerMark | None:
    """The answer mark in a text. If there are several: the one that answers `expected`, else the last one."""
    answers = [
        AnswerMark(match["answer"], int(match["call"]), match["saw"])
        for match in _BRACKET.finditer(text)
        if match["answer"]
    ]
    return next((each for each in answers if each.mark == expected), answers[-1] if answers else None)


def marks_in(messages: Sequence[Mapping[str, object]]) -> list[Sighting]:
    return list(itertools.chain.from_iterable(map(_in_message, messages)))


def text_marks(text: str) -> list[Sighting]:
    """The marks in the text of an answer."""
    return [*_in_text(text, "assistant")]


def turn_marks(messages: Messages) -> list[Sighting]:
    """The marks of turns, answers and summaries."""
    return [seen for seen in marks_in(messages) if seen.kind in _OF_TURNS]


def newest_user_mark(messages: Sequence[Mapping[str, object]]) -> str:
    newest_first = (sighting for message in reversed(messages) for sighting in reversed(_in_message(message)))
    return next((seen.mark for seen in newest_first if seen.kind == "user" and seen.role == "user"), "-")


def saw_list(saw: str) -> list[Sighting]:
    """Parse a `saw` list. An unknown word becomes a text sighting, so that it is not lost."""
    return [_from_token(token) for token in saw.split()]


def _in_message(message: Mapping[str, object]) -> tuple[Sighting, ...]:
    role, content, calls = str(message.get("role", "")), message.get("content"), message.get("tool_calls")
    text = content if isinstance(content, str) else content_text(content)
    if role == "tool":
        return (Sighting("result", role, mark=str(message.get("tool_call_id", "")), text=text),)
    if not calls or not isinstance(calls, Sequence):
        return _in_plain_text(text, role)
    called = (Sighting("call", role, mark=str(call.get("id", ""))) for call in calls if isinstance(call, Mapping))
    return (*_in_text(text, role), *called)


@functools.lru_cache(maxsize=8192)
def _in_plain_text(text: str, role: str) -> tuple[Sighting, ...]:
    """The marks of a message without tool calls; if it has none, its text. Every call repeats the history of its conversation, so the same texts come again and again."""
    return _in_text(text, role) or (Sighting("text", role, text=text),)


def _in_text(text: str, role: str) -> tuple[Sighting, ...]:
    return tuple(_from_match(match, role) for match in _BRACKET.finditer(text))


def _from_match(match: re.Match[str], role: str) -> Sighting:
    if match["user"]:
        return Sighting("user", role, match["user"])
    if match["system"]:
        return Sighting("system", role, match["system"])
    if match["answer"]:
        return Sighting("answer", role, match["answer"], int(match["call"]))
    return Sighting("summary", role, call=int(match["summary"]), covers=_covered(match["covers"] or ""))


def _from_token(token: str) -> Sighting:
    match = _TOKEN.fullmatch(token)
    if match is None:
        return Sighting("text", "", text=token)
    sighting = _from_match(match, match["role"] or "")
    return sighting if sighting.role else replace(sighting, role=_USUAL_ROLE[sighting.kind])


def _covered(tokens: str) -> tuple[str, ...]:
    return tuple(token[2:10] for token in re.split(r"[ ,]", tokens) if token.startswith("u:"))


class SummaryCalls:
    """Recognises the calls that ask for a summary. A pattern of the profile (`summary:`) decides alone.

    An ordinary call ends in a turn of the client that has no answer yet, whatever is before it: a target may keep its last summary in any message, and
    its instructions may be about summaries. What the calls of first turns say about summaries is learned: a first turn has nothing that could be
    summarised, so the same words in a later call ask for nothing.
    """

    def __init__(self, pattern: str = DEFAULT_PATTERN) -> None:
        self._pattern = re.compile(pattern, re.IGNORECASE)
        self._decides_alone = pattern != DEFAULT_PATTERN
        self._continued: set[str] = set()
        self._ordinary: set[str] = set()
        self._learned = False

    def asks(self, messages: Messages) -> bool:
        if self._decides_alone:
            ends = (content_text(message.get("content")) for message in (*messages[:1], *messages[-1:]))
            return any(self._pattern.search(text) for text in ends)
        return not self._is_first_turn(messages) and self._asks(messages)

    def _is_first_turn(self, messages: Messages) -> bool:
        """Whether a call is about the first turn of a conversation, the only one that it has. Such a call is learned from."""
        turns = turn_marks(messages)
        if len(turns) != 1 or turns[0].kind != "user" or turns[0].mark in self._continued:
            self._continued |= {turn.mark for turn in turns if turn.mark}
            return False
        self._learned = True
        self._ordinary |= {words for message in messages for words in _words_about_summaries(_text(message))}
        return True

    def _asks(self, messages: Messages) -> bool:
        if not any(map(_has_turn, messages)):
            return False
        last, pending = messages[-1], pending_turn(messages)
        if pending != len(messages) - 1 and last.get("role") in _INSTRUCTING and self._new_words(_text(last)):
            return True
        return self._asks_first(messages) if pending is None else self._asks_around(messages, pending)

    def _asks_first(self, messages: Messages) -> bool:
        """Whether a call that ends in no turn of the client asks for a summary in its first message."""
        first = _text(messages[0])
        # A summary that the target keeps there is no request for another one, as in a call that asks for a title, or that ends with a tool's result.
        asks_for_something_else = not turn_marks(messages[-1:]) and messages[-1].get("role") in {"user", "tool"}
        if asks_for_something_else:
            return self._requests(first) and not _has_summary(messages[0])
        return bool(self._new_words(first))

    def _asks_around(self, messages: Messages, pending: int) -> bool:
        """Whether a call that ends in a turn of the client asks to summarise it, right before it or in the instructions."""
        turn, first = messages[pending], messages[0]
        if self._requests(_text(turn).partition("[u:")[0]) and not _has_summary(turn):
            return True
        instructs = first.get("role") != "user" and not _has_turn(first)
        earlier = any(map(_has_turn, messages[:pending]))
        return self._learned and instructs and earlier and self._requests(_text(first))

    def _requests(self, text: str) -> bool:
        return any(_REQUEST.search(words) for words in self._new_words(text))

    def _new_words(self, text: str) -> set[str]:
        return _words_about_summaries(text) - self._ordinary


def _words_about_summaries(text: str) -> set[str]:
    """The words around each mention of a summary. A title is no summary, although many prompts for titles say so."""
    found = (text[max(0, match.start() - _AROUND) : match.end() + _AROUND] for match in _MENTION.finditer(text))
    return {_DIGITS.sub("", words).lower() for words in found if "title" not in words.lower()}


def _text(message: Mapping[str, object]) -> str:
    return content_text(message.get("content"))


def pending_turn(messages: Messages) -> int | None:
    """The index of the message with the newest turn of the client, if that turn has no answer yet; None for a transcript."""
    last = next((index for index in reversed(range(len(messages))) if _has_turn(messages[index])), None)
    if last is None or messages[last].get("role") != "user":
        return None
    # A text before the turn in the same message may be a summary; a transcript has answers, or several turns.
    seen = turn_marks([messages[last]])
    turns = [each for each in seen if each.kind == "user"]
    whole = len(turns) == 1 and seen[-1] == turns[0] and not any(each.kind == "answer" for each in seen)
    return last if whole else None


def _has_turn(message: Mapping[str, object]) -> bool:
    return any(seen.kind in _OF_TURNS for seen in _in_message(message))


def _has_summary(message: Mapping[str, object]) -> bool:
    return any(seen.kind == "summary" for seen in marks_in([message]))

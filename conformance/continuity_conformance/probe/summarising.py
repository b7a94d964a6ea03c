"""Which calls of the model ask for a summary. Pure: knows messages and marks only.

An ordinary call ends in a turn of the client that has no answer yet, whatever is before it: a target may keep its last summary in a system, user or
assistant message, and its instructions may be about summaries. What the calls of first turns say about summaries is learned: a first turn has nothing
that could be summarised, so the same words in a later call ask for nothing.
"""

import re
from collections.abc import Mapping
from typing import Final

from continuity_conformance.probe.marks import Messages, content_text, marks_in, turn_marks

DEFAULT_PATTERN: Final = "summar"
"""The pattern where the profile has none of its own."""
_REQUEST: Final = re.compile(
    r"summari[sz](?:e|ing|er|ation)\b|(?:writ|creat|mak|produc|generat|provid|updat|return|giv)\w*\b[^.\n]{0,80}\bsummar(?:y|ies)",
    re.IGNORECASE,
)
"""Asks for a summary; a heading such as "Summary of the conversation so far" does not."""
_MENTION: Final = re.compile(DEFAULT_PATTERN, re.IGNORECASE)
_DIGITS: Final = re.compile(r"\d+")
_AROUND: Final = 60
"""How many characters on either side of a word are compared with what was learned."""
_INSTRUCTING: Final = frozenset({"system", "developer", "user"})


class SummaryCalls:
    """Recognises the calls that ask for a summary. A pattern of the profile (`summary:`) decides alone."""

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
        if not turn_marks(messages):
            return False
        last, pending = messages[-1], pending_turn(messages)
        if pending != len(messages) - 1 and last.get("role") in _INSTRUCTING and self._new_words(_text(last)):
            return True
        return self._asks_first(messages) if pending is None else self._asks_around(messages, pending)

    def _asks_first(self, messages: Messages) -> bool:
        """Whether a call that ends in no turn of the client asks for a summary in its first message."""
        first = _text(messages[0])
        # A summary that the target keeps there is no request for another one, as in a call that asks for a title.
        asks_for_something_else = not turn_marks(messages[-1:]) and messages[-1].get("role") == "user"
        if asks_for_something_else:
            return self._requests(first) and not _has_summary(messages[0])
        return bool(self._new_words(first))

    def _asks_around(self, messages: Messages, pending: int) -> bool:
        """Whether a call that ends in a turn of the client asks to summarise it, right before it or in the instructions."""
        turn, first = messages[pending], messages[0]
        if self._requests(_text(turn).partition("[u:")[0]) and not _has_summary(turn):
            return True
        instructs = first.get("role") != "user" and not turn_marks([first])
        earlier = turn_marks(messages[:pending])
        return self._learned and instructs and bool(earlier) and self._requests(_text(first))

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
    marked = [index for index, message in enumerate(messages) if turn_marks([message])]
    if not marked or messages[marked[-1]].get("role") != "user":
        return None
    # A text before the turn in the same message may be a summary; a transcript has answers, or several turns.
    seen = turn_marks([messages[marked[-1]]])
    turns = [each for each in seen if each.kind == "user"]
    whole = len(turns) == 1 and seen[-1] == turns[0] and not any(each.kind == "answer" for each in seen)
    return marked[-1] if whole else None


def _has_summary(message: Mapping[str, object]) -> bool:
    return any(seen.kind == "summary" for seen in marks_in([message]))

"""The text that each label of a scenario becomes on the wire. The same label is always the same bytes.

A label names a turn (`say: red`). The text of a turn contains a mark, and so does each system prompt. Nothing here knows HTTP.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from continuity_conformance.core.failure import Untested
from continuity_conformance.http.reading import Reading
from continuity_conformance.probe.marks import answer_text, new_mark, system_text, user_text

Message = dict[str, object]
_PROMPTS = ("system", "developer")
_MORE = " And so it goes on."
_MUCH_MORE = re.compile(f"(?:{re.escape(_MORE)}){{4,}}")


def shortened(text: str) -> str:
    """Shorten a text for people: padding that only makes a turn long is counted, not shown."""
    return _MUCH_MORE.sub(lambda more: f"{_MORE} … ({len(more[0]) - len(_MORE)} more characters of this)", text)


class Wording:
    """The labels of one scenario and the answers to them. `labels` maps every mark of the run to its label."""

    def __init__(self, labels: dict[str, str]) -> None:
        self._labels = labels
        self._marks: dict[str, str] = {}
        self._system_marks: dict[str, str] = {}
        self._answered: dict[str, Reading] = {}
        self._called: dict[str, tuple[Mapping[str, object], ...]] = {}
        self._beside_calls: dict[str, str] = {}
        self._long: dict[str, int] = {}
        self._preceding: dict[str, tuple[str, ...]] = {}

    @property
    def marks(self) -> frozenset[str]:
        return frozenset(self._marks.values())

    def mark(self, label: str) -> str:
        if label not in self._marks:
            self._marks[label] = new_mark()
            self._labels[self._marks[label]] = label
        return self._marks[label]

    def label(self, mark: str) -> str:
        """The label of a mark, for messages; it says so if the mark belongs to another scenario."""
        if mark in self._marks.values():
            return self._labels[mark]
        return f"another's {self._labels[mark]}" if mark in self._labels else f"unknown turn {mark}"

    def system_label(self, mark: str) -> str:
        return next((words for words, ours in self._system_marks.items() if ours == mark), f"unknown prompt {mark}")

    def answered(self, label: str, reading: Reading) -> None:
        self._answered[label] = reading
        if reading.tool_calls:
            self._beside_calls[label] = reading.text
        self._called[label] = reading.tool_calls or self._called.get(label, ())

    def lengthen(self, label: str, characters: int) -> None:
        """Give this turn so many characters from now on."""
        self._long[label] = characters

    def precede(self, label: str, others: Sequence[str]) -> None:
        """Note the turns that came just before another; a history that contains it contains them too."""
        self._preceding[label] = (*self._preceding.get(label, ()), *others)

    def user_text(self, label: str) -> str:
        text = user_text(self.mark(label), label)
        more = self._long.get(label, 0) - len(text)
        return text + (_MORE * (more // len(_MORE) + 1))[:more] if more > 0 else text

    def messages(self, params: Mapping[str, Any], label: str) -> list[Message]:
        """The messages of a chat turn: system prompt, the request's own history, the new input, and what comes after it."""
        system: list[Message] = [
            {"role": role, "content": self._system_text(params[role])} for role in _PROMPTS if role in params
        ]
        named = [*params.get("history", []), *(() if "session" in params else self._preceding.get(label, ()))]
        history = [message for past in named for message in self._with_preceding(past, label)]
        new = self._returned(label, params.get("results")) if "returns" in params else [self._user(label)]
        return [*system, *history, *new, *params.get("then", [])]

    def instructions(self, params: Mapping[str, Any]) -> dict[str, object]:
        """The system prompt of a response, as a field of its body; empty if it has none."""
        return {"instructions": self._system_text(params["instructions"])} if "instructions" in params else {}

    def made_up(self, labels: Sequence[str]) -> tuple[Message, ...]:
        """A history that never happened, with invented answers."""
        return tuple(message for label in labels for message in self._past(label))

    def _user(self, label: str) -> Message:
        return {"role": "user", "content": self.user_text(label)}

    def _system_text(self, words: str) -> str:
        return system_text(self._system_marks.setdefault(words, new_mark()), words)

    def _with_preceding(self, label: str, newest: str) -> list[Message]:
        before = () if label == newest else self._preceding.get(label, ())
        return [message for past in (*before, label) for message in self._past(past)]

    def _past(self, label: str) -> list[Message]:
        """A turn in the history of a request: with its real answer if it was sent, else with an invented one."""
        answered = self._answered.get(label)
        text = answered.text if answered is not None else answer_text(self.mark(label), 0)
        return [self._user(label), {"role": "assistant", "content": text}]

    def _returned(self, label: str, only: int | None = None) -> list[Message]:
        """A turn, the client tool calls that the model answered with, and their results, or only one of these."""
        calls = self._calls(label)
        results: list[Message] = [
            {"role": "tool", "tool_call_id": call.get("id"), "content": _found(label, number)}
            for number, call in enumerate(calls, 1)
            if only in (None, number)
        ]
        text = self._beside_calls.get(label) or None
        return [self._user(label), {"role": "assistant", "content": text, "tool_calls": list(calls)}, *results]

    def items(self, params: Mapping[str, Any], label: str) -> list[Message]:
        """The `input` of a response as a list: results of client tools, or earlier turns and the one that is said."""
        if "returns" in params:
            return self._returned_items(label, params.get("results"))
        past = [message for each in params["history"] for message in self._past(each)]
        return [{"type": "message", **message} for message in (*past, self._user(label))]

    def _returned_items(self, label: str, only: int | None) -> list[Message]:
        return [
            {"type": "function_call_output", "call_id": call.get("call_id"), "output": _found(label, number)}
            for number, call in enumerate(self._calls(label), 1)
            if only in (None, number)
        ]

    def _calls(self, label: str) -> tuple[Mapping[str, object], ...]:
        calls = self._called.get(label, ())
        if not calls:
            raise Untested(f"the model called no client tool in the turn {label}")
        return calls


def _found(label: str, number: int) -> str:
    """The result of a client tool call. No other call of the scenario has it."""
    return f"found {number} for {label}"

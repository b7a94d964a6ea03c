"""Read the messages of a model call as a list of turns.

A **whole turn** is a user mark followed directly by its answer (tool calls and their results may come between) and reads as its label: `blue`.
Anything else is described: `blue (no answer)`, `answer to blue (no question)`. Pure: knows neither the probe nor the target.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from continuity_conformance.probe.marks import SAME_CALL, Sighting, content_text, marks_in

Label = Callable[[str], str]
_MARK: Final = re.compile(r"\[(?:u|s|sum)[:#]")
_DIGITS: Final = re.compile(r"\d+")
_FOUND: Final = re.compile(r"found \d+ for [^\n\"\\]+")
"""What the kit's client returns as the result of a call."""


@dataclass(frozen=True, slots=True)
class View:
    """What one model call saw. `summarised`: the user marks that its summaries cover. `messages`: None without a log."""

    sightings: tuple[Sighting, ...]
    summarised: frozenset[str] = frozenset()
    messages: tuple[Mapping[str, object], ...] | None = None

    @property
    def has_summary(self) -> bool:
        return any(sighting.kind == "summary" for sighting in self.sightings)

    def system_marks(self) -> list[str]:
        return [sighting.mark for sighting in self.sightings if sighting.kind == "system"]

    def results(self) -> list[str]:
        """The texts of the tool results, in order."""
        return [sighting.text for sighting in self.sightings if sighting.kind == "result"]

    def quoted(self) -> frozenset[str]:
        """The user marks in messages other than the client's own, as in a summary that the target wrote itself."""
        messages = [message for message in self.messages or () if not _is_of_client(message)]
        return frozenset(seen.mark for seen in marks_in(messages) if seen.kind == "user")

    def unmarked_texts(self) -> frozenset[str]:
        """What the target itself told the model: the texts without a mark, and those before one. Numbers do not count."""
        messages = [message for message in self.messages or () if message.get("role") != "tool"]
        texts = (content_text(message.get("content")) for message in messages)
        own = (_MARK.split(text)[0] for text in texts if "[a:" not in text)
        return frozenset(_DIGITS.sub("", text).strip() for text in own) - {""}


def _is_of_client(message: Mapping[str, object]) -> bool:
    return message.get("role") == "user" and content_text(message.get("content")).startswith("[u:")


def turns(
    view: View, label: Label, failed: frozenset[str] = frozenset(), silent: frozenset[str] = frozenset()
) -> list[str]:
    """The turns that a view shows, in order, as labels.

    `failed`: marks of turns whose model call failed. Any assistant message completes such a turn. `silent`: marks of turns that got an empty answer. They are
    complete with or without a message for it, which some models do not accept.
    """
    items = [sighting for sighting in view.sightings if sighting.kind in {"user", "answer", "text"}]
    items = [item for item in items if item.kind != "text" or item.role == "assistant"]
    read: list[str] = []
    position = 0
    while position < len(items):
        item = items[position]
        following = items[position + 1] if position + 1 < len(items) else None
        labels, used = _read(item, following, label, failed | silent)
        read += [label(item.mark)] if item.mark in silent and labels == [f"{label(item.mark)} (no answer)"] else labels
        position += used
    return read


def _read(item: Sighting, following: Sighting | None, label: Label, failed: frozenset[str]) -> tuple[list[str], int]:
    """The label of one item, and how many items the label covers."""
    if item.kind == "text":
        return [], 1
    name = label(item.mark)
    if item.kind == "answer":
        return [f"answer to {name} (no question)" + _as_role(item, "assistant")], 1
    if item.role != "user":
        return [name + _as_role(item, "user")], 1
    if following is None or _answers(following, item, failed):
        return [name], 1 if following is None else 2
    if following.kind == "answer" and following.mark == item.mark:
        return [f"{name} (answer{_as_role(following, 'assistant')})"], 2
    return [f"{name} (no answer)"], 1


def _answers(following: Sighting, item: Sighting, failed: frozenset[str]) -> bool:
    if following.role != "assistant":
        return False
    return following.mark == item.mark if following.kind == "answer" else item.mark in failed


def _as_role(item: Sighting, usual: str) -> str:
    return "" if item.role == usual else f" as {item.role or 'no role'}"


def unpaired(messages: Sequence[Mapping[str, object]]) -> list[str]:
    """The tool calls without a result right after them, results without a call right before them, and repeated calls."""
    problems = [*_repeated(messages)]
    waiting: list[str] = []
    for message in messages:
        if message.get("role") == "tool":
            result = str(message.get("tool_call_id", ""))
            problems += [] if result in waiting else [f"result {result} without its call before it"]
            waiting = [call for call in waiting if call != result]
            continue
        problems += [f"call {call} without its result after it" for call in waiting]
        waiting = _calls(message)
    return problems + [f"call {call} without its result after it" for call in waiting]


def _repeated(messages: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """The calls, and the results of the kit's client, that are there twice. The probe gives some calls the same id; their results differ."""
    calls = [call for message in messages for call in _calls(message) if call != SAME_CALL]
    yield from (f"call {call} twice" for call in dict.fromkeys(calls) if calls.count(call) > 1)
    results = [content_text(message.get("content")) for message in messages if message.get("role") == "tool"]
    found = [found for result in results for found in _FOUND.findall(result)]
    yield from (f"result {result!r} twice" for result in dict.fromkeys(found) if found.count(result) > 1)


def _calls(message: Mapping[str, object]) -> list[str]:
    calls = message.get("tool_calls")
    return (
        [str(call.get("id", "")) for call in calls if isinstance(call, Mapping)] if isinstance(calls, Sequence) else []
    )


def matches(pattern: Sequence[str], seen: Sequence[str], copies: Mapping[str, Sequence[str]]) -> bool:
    """Compare `seen` with `pattern`. `maybe x` matches x or nothing, `each x` every accepted copy of x, once each, in any order."""
    if not pattern:
        return not seen
    first, rest = pattern[0], pattern[1:]
    if first.startswith("maybe "):
        wanted = first.removeprefix("maybe ")
        return matches(rest, seen, copies) or (seen[:1] == [wanted] and matches(rest, seen[1:], copies))
    if first.startswith("each "):
        accepted = copies[first.removeprefix("each ")]
        return sorted(seen[: len(accepted)]) == sorted(accepted) and matches(rest, seen[len(accepted) :], copies)
    return list(seen[:1]) == [first] and matches(rest, seen[1:], copies)

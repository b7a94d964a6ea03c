"""Read the messages of a model call, or those that the target lists, as the turns of a conversation."""

from collections.abc import Mapping, Sequence

from continuity_conformance.probe.marks import marks_in
from continuity_conformance.probe.view import View, turns
from continuity_conformance.torture.audit.history import NO_ANSWER

Messages = Sequence[Mapping[str, object]]


def seen_by_model(messages: Messages) -> tuple[str, ...]:
    """The turns in the messages of a call, as `Observation.seen` has them."""
    return tuple(turns(View(tuple(marks_in(messages))), str))


def seen_in_store(messages: Messages) -> tuple[str, ...]:
    """The turns in a list of stored messages. Here a last question that has no answer is a part of a turn."""
    marked = [seen for seen in marks_in(messages) if seen.kind in {"user", "answer"}]
    seen = seen_by_model(messages)
    open_end = bool(marked) and marked[-1].kind == "user" and marked[-1].role == "user"
    return (*seen[:-1], f"{seen[-1]}{NO_ANSWER}") if open_end else seen


def summaries_in(messages: Messages) -> list[int]:
    """The numbers of the model calls whose summaries are in the messages."""
    return [seen.call for seen in marks_in(messages) if seen.kind == "summary"]


def users_in(messages: Messages) -> frozenset[str]:
    return frozenset(seen.mark for seen in marks_in(messages) if seen.kind == "user")

"""The shortest story of a violation: only the turns that it is about, when they were read back, and what was done to the processes in between."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from continuity_conformance.torture.audit.checker import mark_of
from continuity_conformance.torture.audit.history import (
    FoundViolation,
    History,
    Observation,
    SentTurn,
    TurnOutcome,
    Violation,
)
from continuity_conformance.torture.audit.journal import ProcessEvent

Lane = Literal["client", "target", "read back"]
_SHOWN: Final = 3
"""Of many events of the processes, so many are shown at either end."""
_LISTED: Final = 8
_DONE: Final[Mapping[TurnOutcome, str]] = {
    TurnOutcome.ANSWERED: "is answered",
    TurnOutcome.UNANSWERED: "gets no answer",
    TurnOutcome.REFUSED: "is refused",
}


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One event. `wrong`: it shows the violation."""

    at: float
    lane: Lane
    says: str
    wrong: bool = False


def timeline(finding: FoundViolation, history: History, events: Sequence[ProcessEvent]) -> list[TimelineEntry]:
    """The events of a violation, in order."""
    names = {turn.mark: f"turn {number}" for number, turn in enumerate(history.turns, 1)}
    turns = [turn for turn in history.turns if turn.mark in finding.marks] or list(history.turns[-1:])
    reads = _reads(finding, history)
    entries = [entry for turn in turns for entry in _turn(turn, names, finding)]
    entries += [_read(each, names, finding) for each in reads]
    if not any(entry.wrong for entry in entries):
        entries.append(TimelineEntry(finding.at, "read back", finding.says, wrong=True))
    first = min((entry.at for entry in entries), default=finding.at)
    entries += _shortened([each for each in events if first <= each.at <= finding.at])
    return sorted(entries, key=lambda entry: entry.at)


def _reads(finding: FoundViolation, history: History) -> list[Observation]:
    """The observation that shows the violation, and the last one before it that still had the turns."""
    shows = [each for each in history.observations if each.at == finding.at]
    if finding.violation is Violation.FORKED:
        lists = [each for each in history.observations if each.by in finding.marks and each not in shows[:1]]
        return [*lists[-1:], *shows[:1]]
    before = [
        each
        for each in history.observations
        if each.at < finding.at and any(each.has(mark) and each.by != mark for mark in finding.marks)
    ]
    return [*before[-1:], *shows[:1]]


def _turn(turn: SentTurn, names: Mapping[str, str], finding: FoundViolation) -> Iterator[TimelineEntry]:
    if turn.sent < 0:
        yield TimelineEntry(0.0, "client", f"{names[turn.mark]} is in the old database")
        return
    again = f" ({turn.sends} times)" if turn.sends > 1 else ""
    yield TimelineEntry(turn.sent, "client", f"{names[turn.mark]} is sent{again}")
    ended = turn.ended if turn.ended != math.inf else finding.at
    status = f": {turn.status}" if turn.status else ""
    yield TimelineEntry(min(ended, finding.at), "client", f"{names[turn.mark]} {_DONE[turn.outcome]}{status}")


def _read(observation: Observation, names: Mapping[str, str], finding: FoundViolation) -> TimelineEntry:
    wrong = observation.at == finding.at
    seen = [_named(item, names) for item in observation.seen]
    shown = seen if len(seen) <= _LISTED else [*seen[:2], "…", *seen[-(_LISTED - 2) :]]
    covered = sorted(names[mark] for mark in observation.summarised if mark in names)
    summary = f", and in a summary {', '.join(covered)}" if covered else ""
    text = f"{observation.source}: {', '.join(shown) or 'nothing'}{summary}"
    return TimelineEntry(observation.at, "read back", f"{text}. {finding.says}" if wrong else text, wrong)


def _named(item: str, names: Mapping[str, str]) -> str:
    mark = mark_of(item)
    return item.replace(mark, names.get(mark, f"foreign turn {mark}"))


def _shortened(events: Sequence[ProcessEvent]) -> Iterator[TimelineEntry]:
    middle = events[_SHOWN:-_SHOWN] if len(events) > 2 * _SHOWN + 1 else ()
    hidden = set(map(id, middle))
    for event in events:
        if id(event) not in hidden:
            name = f"process {event.replica}: " if event.replica else ""
            yield TimelineEntry(event.at, "target", f"{name}{event.says}")
        elif event is middle[0]:
            yield TimelineEntry(event.at, "target", f"… {len(middle)} more events of the processes …")

"""The audit: compares what was read back of a conversation with what its clients were told. Pure.

A conversation is a list to which turns are appended. An answered turn is in it once and for good, before every turn that was sent after its answer. An
unanswered turn was appended as a whole or not at all, and that never changes. What the model sees in a turn is the list so far, with this turn last.
"""

import itertools
import math
from collections.abc import Iterator, Mapping

from continuity_conformance.torture.audit.history import (
    OF_THE_MODEL,
    FoundViolation,
    History,
    Observation,
    TurnOutcome,
    Violation,
)


def audit(history: History, asked: Mapping[str, int], owners: Mapping[str, str]) -> list[FoundViolation]:
    """Every violation in a conversation, the first one for each turn.

    `asked`: how often the model was called for each turn. `owners`: the conversation of every turn of the campaign, by mark.
    """
    found = [*_in_observations(history, owners), *_between_observations(history)]
    found += [
        *_sessions(history),
        *_responses(history),
        *_wrong_answers(history),
        *_reran(history, asked),
        *_stuck(history),
    ]
    first: dict[tuple[str, ...], FoundViolation] = {}
    for finding in sorted(found, key=lambda each: each.at):
        first.setdefault(finding.marks or (finding.violation,), finding)
    return list(first.values())


def _in_observations(history: History, owners: Mapping[str, str]) -> Iterator[FoundViolation]:
    for observation in history.observations:
        yield from _partial(history, observation)
        yield from _foreign(history, observation, owners)
        yield from _doubled(history, observation)
        yield from _lost(history, observation)
        yield from _refused(history, observation)
        yield from _reordered(history, observation)


def _partial(history: History, observation: Observation) -> Iterator[FoundViolation]:
    for item in observation.seen:
        mark = mark_of(item)
        if _is_part(item) and mark not in observation.summarised and history.turn(mark) is not None:
            says = f"{observation.source} has only a part of the turn: {words_of(item)}"
            yield _found(Violation.PARTIAL, history, says, observation, mark)


def _foreign(history: History, observation: Observation, owners: Mapping[str, str]) -> Iterator[FoundViolation]:
    for mark in dict.fromkeys(map(mark_of, observation.seen)):
        turn = history.turn(mark)
        if turn is None:
            owner = owners.get(mark, "nobody in this campaign")
            yield _found(Violation.FOREIGN, history, f"{observation.source} has a turn of {owner}", observation, mark)
        elif turn.outcome is TurnOutcome.UNANSWERED and not turn.may_stay and turn.mark != observation.by:
            says = f"{observation.source} has an unanswered turn of another branch: the next turn continued from the response before it"
            yield _found(Violation.FOREIGN, history, says, observation, mark)


def _doubled(history: History, observation: Observation) -> Iterator[FoundViolation]:
    for mark in dict.fromkeys(observation.seen):
        if (times := observation.seen.count(mark)) > 1:
            yield _found(
                Violation.DOUBLED, history, f"{observation.source} has the turn {times} times", observation, mark
            )


def _lost(history: History, observation: Observation) -> Iterator[FoundViolation]:
    seen = {*map(mark_of, observation.seen), *observation.summarised}
    for turn in history.turns:
        answered = turn.outcome is TurnOutcome.ANSWERED and turn.ended <= observation.since
        if (
            turn.mark not in seen
            and turn.mark != observation.by
            and (answered or _was_there(history, turn.mark, observation))
        ):
            before = "was answered" if answered else "was read back before"
            says = f"the turn {before}, and {observation.source} no longer has it"
            yield _found(Violation.LOST, history, says, observation, turn.mark)
    if observation.source == OF_THE_MODEL and observation.seen[-1:] != (observation.by,):
        yield _found(
            Violation.LOST, history, "the model did not see the turn that it answered last", observation, observation.by
        )


def _was_there(history: History, mark: str, later: Observation) -> bool:
    """Whether a whole turn was read back before. The turn of an observation itself counts only once it was answered."""
    return any(each.at <= later.since and each.by != mark and each.has(mark) for each in history.observations)


def _refused(history: History, observation: Observation) -> Iterator[FoundViolation]:
    for turn in history.turns:
        if turn.outcome is TurnOutcome.REFUSED and turn.mark in map(mark_of, observation.seen):
            says = f"the turn was refused ({turn.status}), and {observation.source} has it"
            yield _found(Violation.REFUSED_STORED, history, says, observation, turn.mark)


def _reordered(history: History, observation: Observation) -> Iterator[FoundViolation]:
    """A turn must not come after one that was sent when it was answered already."""
    latest, whose = -math.inf, ""
    for mark in dict.fromkeys(map(mark_of, observation.seen)):
        turn = history.turn(mark)
        if turn is None:
            continue
        if turn.outcome is TurnOutcome.ANSWERED and turn.ended <= latest:
            says = f"in {observation.source} the turn comes after one that was sent later"
            yield _found(Violation.REORDERED, history, says, observation, mark, whose)
        if turn.sent > latest:
            latest, whose = turn.sent, mark


def _between_observations(history: History) -> Iterator[FoundViolation]:
    for turn in history.turns:
        absent = [each for each in history.observations if turn.ended <= each.since and not _mentions(each, turn.mark)]
        first = min((each.at for each in absent), default=math.inf)
        again = [each for each in history.observations if each.since >= first and _mentions(each, turn.mark)]
        if turn.outcome is TurnOutcome.UNANSWERED and again:
            says = f"the unanswered turn was not there, and then {again[0].source} has it"
            yield _found(Violation.REVIVED, history, says, again[0], turn.mark)
    yield from _forked(history)


def _mentions(observation: Observation, mark: str) -> bool:
    return mark in observation.summarised or mark in map(mark_of, observation.seen)


def _forked(history: History) -> Iterator[FoundViolation]:
    """Of two lists that were read back, one must be the beginning of the other. A summary replaces a beginning, so it ends the comparison."""
    whole = [each for each in history.observations if not each.summarised and not any(map(_is_part, each.seen))]
    for shorter, longer in itertools.pairwise(sorted(whole, key=lambda each: (len(each.seen), each.at))):
        if longer.seen[: len(shorter.seen)] != shorter.seen and not history.compressed:
            ends = [mark_of(each.seen[-1]) for each in (shorter, longer) if each.seen]
            says = "two lists of turns were read back, and neither is the beginning of the other"
            yield _found(Violation.FORKED, history, says, max(shorter, longer, key=lambda each: each.at), *ends)


def _sessions(history: History) -> Iterator[FoundViolation]:
    """A conversation that was not compressed has one session. One that went back to an earlier response may have branched."""
    branched = any(turn.outcome is TurnOutcome.UNANSWERED and not turn.may_stay for turn in history.turns)
    named = [each for each in history.observations if each.session]
    for earlier, later in itertools.pairwise(named):
        if not (history.compressed or branched) and earlier.session != later.session:
            says = f"the conversation goes on in another session: {later.session} instead of {earlier.session}"
            yield _found(Violation.FORKED, history, says, later, later.by)


def _responses(history: History) -> Iterator[FoundViolation]:
    for response in history.responses:
        turn = history.turn(response.mark)
        if turn is None:
            continue
        if turn.outcome is TurnOutcome.ANSWERED and not response.there:
            says = "the turn was answered, and its response is gone"
            yield FoundViolation(Violation.LOST, history.name, says, response.at, (turn.mark,))
        later = [each for each in history.observations if each.since >= response.at]
        if (
            turn.outcome is TurnOutcome.UNANSWERED
            and turn.may_stay
            and response.there
            and later
            and not _mentions(later[0], turn.mark)
        ):
            says = f"the response of the turn is stored, and {later[0].source} does not have the turn"
            yield _found(Violation.PARTIAL, history, says, later[0], turn.mark)


def _wrong_answers(history: History) -> Iterator[FoundViolation]:
    for wrong in history.wrong_answers:
        yield FoundViolation(
            Violation.FOREIGN, history.name, f"the client got an answer {wrong.says}", wrong.at, (wrong.mark,)
        )


def _reran(history: History, asked: Mapping[str, int]) -> Iterator[FoundViolation]:
    for turn in history.turns:
        times = asked.get(turn.mark, 0)
        if times > turn.sends:
            later = [each.at for each in history.observations if each.at > turn.sent]
            says = f"the client sent the turn {_times(turn.sends)}, and the model was asked for it {_times(times)}"
            yield FoundViolation(Violation.RERAN, history.name, says, min(later, default=turn.sent), (turn.mark,))


def _stuck(history: History) -> Iterator[FoundViolation]:
    if history.stuck is not None:
        at, reason = history.stuck
        yield FoundViolation(Violation.STUCK, history.name, f"the conversation cannot be continued: {reason}", at)


def _found(violation: Violation, history: History, says: str, observation: Observation, *marks: str) -> FoundViolation:
    return FoundViolation(violation, history.name, says, observation.at, tuple(dict.fromkeys(filter(None, marks))))


def mark_of(item: str) -> str:
    """The mark of a turn in `seen`, also where only a part of it is there, or where it has a wrong role."""
    return item.removeprefix("answer to ").partition(" ")[0]


def words_of(item: str) -> str:
    """What is said about a part of a turn."""
    said = "answer without question" if item.startswith("answer to ") else ""
    return said or item.removeprefix(mark_of(item)).strip(" ()")


def _is_part(item: str) -> bool:
    return item != mark_of(item)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"

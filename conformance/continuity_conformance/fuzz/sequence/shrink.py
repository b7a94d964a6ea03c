"""Shrink a failing sequence: leave moves out, then simplify the others, as long as something still fails."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from continuity_conformance.core.work import current_work
from continuity_conformance.fuzz.sequence.counterexample import Counterexample, steps_as_yaml
from continuity_conformance.fuzz.sequence.generator import (
    GeneratedSequence,
    Moves,
    SequenceScope,
    YamlStep,
    sequence_of,
)
from continuity_conformance.fuzz.sequence.player import SequenceResult

Play = Callable[[tuple[YamlStep, ...]], Awaitable[SequenceResult]]


@dataclass(frozen=True, slots=True)
class FailingSequence:
    """The moves up to the failing step, and their counterexample."""

    moves: Moves
    counterexample: Counterexample

    @property
    def size(self) -> tuple[int, int]:
        return len(self.moves), len(self.counterexample.yaml)


def failing_part(sequence: GeneratedSequence, result: SequenceResult) -> FailingSequence | None:
    """Return the sequence up to its failing step, or None if it did not fail."""
    if result.unmet is None:
        return None
    length = int(result.unmet.number)
    return FailingSequence(sequence.moves[:length], Counterexample(sequence.steps[:length], result.unmet))


async def shrink(failing: FailingSequence, scope: SequenceScope, play: Play, max_plays: int) -> Counterexample:
    """Return the shortest sequence that still fails.

    The limit is a number of plays and not a time, so that a seed always gives the same result.
    """
    tried = {failing.counterexample.yaml}
    candidates, work = deque(_simpler(failing.moves)), current_work()
    work.begin_phase()
    while max_plays and candidates:
        work.plan(len(failing.moves) * min(max_plays, len(candidates)))
        sequence = sequence_of(scope, candidates.popleft())
        if steps_as_yaml(sequence.steps) in tried:
            continue
        tried.add(steps_as_yaml(sequence.steps))
        max_plays -= 1
        shorter = failing_part(sequence, await play(sequence.steps))
        if shorter is not None and shorter.size < failing.size:
            failing, candidates = shorter, deque(_simpler(shorter.moves))
    return failing.counterexample


def _simpler(moves: Moves) -> Iterator[Moves]:
    """Yield the moves without a half, a quarter, … and single moves, last ones first; then with a simpler choice."""
    size = len(moves) // 2
    while size:
        for start in range(len(moves) - size, -1, -1):
            yield moves[:start] + moves[start + size :]
        size //= 2
    for index, move in enumerate(moves):
        for position in range(1, len(move)):
            simpler = (*move[:position], 0, *move[position + 1 :])
            yield (*moves[:index], simpler, *moves[index + 1 :])

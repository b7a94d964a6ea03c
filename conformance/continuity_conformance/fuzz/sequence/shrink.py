"""Making a sequence that failed short: leave moves out, then make the others plain, as long as something still fails."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from continuity_conformance.fuzz.sequence.counterexample import Counterexample, written
from continuity_conformance.fuzz.sequence.machine import Drawn, Moves, Reach, Written, sequence
from continuity_conformance.fuzz.sequence.player import Ending

Play = Callable[[tuple[Written, ...]], Awaitable[Ending]]


@dataclass(frozen=True, slots=True)
class Failure:
    """The moves up to the step that failed, and what they come to."""

    moves: Moves
    example: Counterexample

    @property
    def size(self) -> tuple[int, int]:
        return len(self.moves), len(self.example.key)


def failure(drawn: Drawn, ending: Ending) -> Failure | None:
    """What is left of a sequence when everything after the step that failed is cut off."""
    if ending.unmet is None:
        return None
    length = int(ending.unmet.number)
    return Failure(drawn.moves[:length], Counterexample(drawn.steps[:length], ending.unmet))


async def shrunk(found: Failure, reach: Reach, play: Play, plays: int) -> Counterexample:
    """The shortest sequence that still fails, after so many plays at most: a number and not a time, so that a seed always finds the same."""
    tried = {found.example.key}
    candidates = _simpler(found.moves)
    while plays and (moves := next(candidates, None)) is not None:
        drawn = sequence(reach, moves)
        if written(drawn.steps) in tried:
            continue
        tried.add(written(drawn.steps))
        plays -= 1
        shorter = failure(drawn, await play(drawn.steps))
        if shorter is not None and shorter.size < found.size:
            found, candidates = shorter, _simpler(shorter.moves)
    return found.example


def _simpler(moves: Moves) -> Iterator[Moves]:
    """Without halves, quarters, … and single moves, the last ones first; then with a plainer choice."""
    size = len(moves) // 2
    while size:
        for start in range(len(moves) - size, -1, -1):
            yield moves[:start] + moves[start + size :]
        size //= 2
    for index, move in enumerate(moves):
        for place in range(1, len(move)):
            plainer = (*move[:place], 0, *move[place + 1 :])
            yield (*moves[:index], plainer, *moves[index + 1 :])

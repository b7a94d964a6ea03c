"""How long a run still takes, judged by what it did so far.

The work of a play is its turns, its other requests and its starts of servers. `work.json` has how many they are on the bundled server (`python tools/work.py` measures
it); how long each of them takes on this target, the run measures itself. There are two bounds:

- If nothing slows anything down, the run takes as long as its slowest group of plays at its pace so far.
- If everything waits for the same processor, what is left takes as long for its amount as what was done.

The truth is between them. Requests that take much longer than in the calibration, when nothing else played, show that they wait for each other.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Final, NamedTuple

from continuity_conformance.core.budget import DEFAULT_EXAMPLES
from continuity_conformance.core.work import Count, Work
from continuity_conformance.run.player import Group, PlayLog, ScenarioPlay

FILE: Final = Path(__file__).with_name("work.json")
_GENERATED: Final = frozenset({Group.SEQUENCES, Group.CAMPAIGN, Group.PROPERTIES, Group.RESTARTED_SEQUENCES})
"""Groups that send more requests if more examples are asked for."""
_BY_PARTS: Final = frozenset({Group.CAMPAIGN, Group.PROPERTIES})
"""Groups whose plays send as many requests at once as the target's limits allow."""
_IN_TURN: Final = frozenset({Group.CAMPAIGN, Group.PROPERTIES, Group.AFTER})
"""Groups whose plays are played one after the other. The time in which they wait for another group is not theirs."""
_FIRST_TURNS: Final = 20
_NEARLY: Final = 0.9
"""At most this part of a play is done before its end: a play that has done more than was expected is a longer one."""
_MORE: Final = 0.2
"""How much longer such a play takes, as a part of its time so far."""
_KNOWN_PACE: Final = 0.25
"""From this part of its work on, a play is judged by its own pace."""


class Expected(NamedTuple):
    """The work of one play on the bundled server. `at_once`: how many of its requests are open at the same time, on average."""

    turns: float
    others: float
    starts: float
    at_once: float


ExpectedWork = Mapping[tuple[str, str], Expected]
"""By requirement and group."""


class _Rates(NamedTuple):
    """Seconds of a turn, of another request and of a start, on this target. `alone`: the part of its time that a turn takes when nothing else plays."""

    turn: float
    other: float
    start: float
    alone: float

    @property
    def crowded(self) -> float:
        """How much the plays wait for each other, from 0 to 1. Turns of one session always do, so a turn that takes twice its time alone proves little."""
        wait = 1 - self.alone
        return wait**2 / (wait**2 + self.alone**2)

    def of(self, turns: float, others: float, starts: float) -> float:
        return turns * self.turn + others * self.other + starts * self.start


@dataclass(frozen=True, slots=True)
class _Share:
    """One play, in seconds of work: all of it and what is done; and when it began and ended."""

    group: Group
    whole: float
    done: float
    began: float | None
    ended: float | None
    work: Work

    @property
    def left(self) -> float:
        return self.whole - self.done

    def longest(self, now: float, usual_pace: float) -> float:
        """The seconds that it takes if nothing else plays its part."""
        if self.began is None or self.ended is not None:
            return 0.0
        if self.work.phase is not None:
            return self.work.phase_seconds(now) or 0.0
        lasts = now - self.began
        if self.done >= _NEARLY * self.whole:
            return _MORE * lasts
        return self.left * (lasts / self.done if self.done >= _KNOWN_PACE * self.whole else usual_pace)


class TimeLeft:
    """The estimate for the plays of a run."""

    def __init__(self, log: PlayLog, expected: ExpectedWork | None = None) -> None:
        self._log = log
        self._sequences = 1.0
        self._expected = expected if expected is not None else read()
        self._usual = Expected(*(mean(column) for column in zip(*self._expected.values(), strict=True)))

    def seconds(self, now: float | None = None) -> float | None:
        """How many seconds are left. None if nothing was done yet."""
        plays, now = list(self._log), time.monotonic() if now is None else now
        rates = _rates(self._log.before, [play.work for play in plays])
        self._sequences = self._part_of_sequences(plays)
        shares = [self._share(play, rates) for play in plays]
        began = [share.began for share in shares if share.began is not None]
        done = sum(share.done for share in shares)
        if not began or not done:
            return None
        left = {each: self._of_group(each, shares, now, rates) for each in Group}
        slowest = left.pop(Group.AFTER) + max(left.values())
        together = (now - min(began)) * sum(share.left for share in shares) / done
        return (1 - rates.crowded) * slowest + rates.crowded * together

    def _of_group(self, group: Group, shares: Sequence[_Share], now: float, rates: _Rates) -> float:
        own = [share for share in shares if share.group is group]
        if group is Group.AFTER and all(share.began is None for share in own):
            return sum(share.left for share in own) * rates.alone
        return _of_group(own, now, _FIRST_TURNS * rates.turn) if own else 0.0

    def _share(self, play: ScenarioPlay, rates: _Rates) -> _Share:
        expected, work = self._expected_of(play), play.work
        # A sequence takes a place for each of its dialogues, so it is as many plays.
        at_once = 1.0 if play.group is Group.SEQUENCES else expected.at_once
        at_once = min(at_once, self._log.at_once) if play.group in _BY_PARTS else at_once
        whole = (rates.of(*expected[:3]) or rates.turn or rates.start) / at_once
        done = rates.of(work.turns.number, work.others.number, work.starts.number) / at_once
        done = whole if play.ended is not None else min(done, _NEARLY * whole)
        if play.group is Group.SEQUENCES:  # they take their places in turn with the calm plays
            return _Share(Group.CALM, whole, done, work.began if work.placed else None, play.ended, work)
        return _Share(play.group, whole, done, work.began, play.ended, work)

    def _part_of_sequences(self, plays: Sequence[ScenarioPlay]) -> float:
        """How much of their sequences the checks play that have begun. Those of a target that fails end at the first that fails."""
        begun = [play for play in plays if play.group is Group.SEQUENCES and play.work.placed]
        expected = [self._expected.get((play.requirement, play.group), self._usual) for play in begun]
        examples = min(1.0, self._log.examples / DEFAULT_EXAMPLES)
        all_of_them = sum(each.turns + each.others for each in expected) * examples
        played = sum(play.work.requests if play.ended is not None else play.work.planned for play in begun)
        return min(1.0, played / all_of_them) if all_of_them else 1.0

    def _expected_of(self, play: ScenarioPlay) -> Expected:
        group = Group.ALONE if play.group is Group.AFTER else play.group
        expected = self._expected.get((play.requirement, group), self._usual)
        requests = expected.turns + expected.others
        if play.work.planned and requests:
            factor = play.work.planned / requests
            factor *= self._sequences if play.group is Group.SEQUENCES and not play.work.placed else 1.0
        elif play.group in _GENERATED:
            factor = min(1.0, self._log.examples / DEFAULT_EXAMPLES)
        else:
            return expected
        return expected._replace(turns=expected.turns * factor, others=expected.others * factor)


def read(file: Path = FILE) -> ExpectedWork:
    """The work of the bundled server's plays."""
    groups = json.loads(file.read_text(encoding="utf-8"))
    return {(id_, group): Expected(*row) for id_, rows in groups.items() for group, row in rows.items()}


def _rates(before: Work, works: Sequence[Work]) -> _Rates:
    every = [before, *works]
    turn, other = _mean(work.turns for work in every), _mean(work.others for work in every)
    alone = _mean([before.turns]) / turn if turn else 1.0
    return _Rates(turn, other, _mean(work.starts for work in every), min(1.0, alone))


def _mean(counts: Iterable[Count]) -> float:
    counts = list(counts)
    number = sum(count.number for count in counts)
    return sum(count.seconds for count in counts) / number if number else 0.0


def _of_group(shares: Sequence[_Share], now: float, first_guess: float) -> float:
    """The time for the plays of a group at their pace so far, and at least for the longest that plays.

    `first_guess`: for so many seconds, a play is taken to last as long as its work, until more is known.
    """
    began, done = [share.began for share in shares if share.began is not None], sum(share.done for share in shares)
    if not began:
        return 0.0
    left = sum(share.left for share in shares)
    lasted = sum((share.ended or now) - share.began for share in shares if share.began is not None)
    pace = (lasted + first_guess) / (done + first_guess)
    in_turn = shares[0].group in _IN_TURN
    queue = left * pace if in_turn or not done else (now - min(began)) * left / done
    return max(queue, *(share.longest(now, pace) for share in shares))

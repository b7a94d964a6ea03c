"""Find the few defects that together explain the failures of a run.

The best set has the largest gain: what each failure says for the defect that explains it best, less what the passes say against each defect of the set, less a
price for each defect. It is searched greedily: add the defect that gains most, then exchange or drop one as long as that gains.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log
from typing import Final

from continuity_conformance.diagnose.match import Knowledge
from continuity_conformance.diagnose.symptoms import Symptoms

_COMMON: Final = 0.05
"""One more defect must gain the logarithm of this share of all known defects: more where it is chosen from more. A failure that every tenth of them shows, at the
same place, is not enough for one of its own."""
_SHARE: Final = 0.3
"""How much of the signature of a defect a run must show, or nothing is said about the defect."""
_ECHO: Final = 0.75
"""What is left of the evidence of a failure that another fitting defect was made for."""
_EXCHANGES: Final = 40
_NOTHING: Final = 1e-9


def _fits(row: Mapping[str, float], run: Symptoms, knowledge: Knowledge, defect: str) -> bool:
    """Whether the run shows enough of what the defect would show, as far as the run decided it."""
    return sum(row.values()) + knowledge.against(run, defect) >= _SHARE * knowledge.whole(run, defect)


def _without_echoes(likeness: Mapping[str, Mapping[str, float]], knowledge: Knowledge) -> dict[str, dict[str, float]]:
    """Less for a failure that a defect was not made to show, where it is what another fitting defect was made for: the first one may only show it as well."""
    made_for = {
        (name, identity)
        for name, row in likeness.items()
        for identity in knowledge.made_for.get(name, ())
        if identity in row
    }
    named = {identity for _, identity in made_for}
    return {
        name: {
            identity: value * (_ECHO if identity in named and (name, identity) not in made_for else 1.0)
            for identity, value in row.items()
        }
        for name, row in likeness.items()
    }


class Cover:
    """The defects that explain a run, and how much each failure speaks for each candidate."""

    def __init__(self, run: Symptoms, knowledge: Knowledge) -> None:
        likeness = {
            defect: {
                identity: value for identity in run.fails if (value := knowledge.likeness(run, identity, defect)) > 0
            }
            for defect in knowledge.signatures
        }
        fitting = {name: row for name, row in likeness.items() if row and _fits(row, run, knowledge, name)}
        self._shares = {name: sum(row.values()) / knowledge.whole(run, name) for name, row in fitting.items()}
        self.likeness: Mapping[str, Mapping[str, float]] = _without_echoes(fitting, knowledge)
        price = log(max(_COMMON * len(knowledge.signatures), 1.0))
        self._price = {defect: price - knowledge.against(run, defect) for defect in self.likeness}
        self.defects = self._search()

    def shown(self, defect: str) -> float:
        """Which share of what the defect would show the run shows."""
        return self._shares[defect]

    def _best(self, defects: Iterable[str]) -> dict[str, float]:
        """For each failure, how much it speaks for the defect that explains it best."""
        best: dict[str, float] = {}
        for defect in defects:
            for identity, value in self.likeness[defect].items():
                best[identity] = max(value, best.get(identity, 0.0))
        return best

    def _added(self, defect: str, best: Mapping[str, float]) -> float:
        """What one more defect gains where the failures are explained this well already."""
        more = (max(value - best.get(identity, 0.0), 0.0) for identity, value in self.likeness[defect].items())
        return sum(more) - self._price[defect]

    def explained_by(self, identity: str) -> str | None:
        """The defect of the cover that explains a failure best."""
        rows = {defect: self.likeness[defect][identity] for defect in self.defects if identity in self.likeness[defect]}
        return max(rows, key=rows.__getitem__, default=None)

    def alternatives(self, defect: str, margin: float) -> list[str]:
        """The defects that explain almost as much of what this one explains, best first."""
        others = self._best(each for each in self.defects if each != defect)
        own = {
            identity: others.get(identity, 0.0)
            for identity, value in self.likeness[defect].items()
            if value > others.get(identity, 0.0)
        }
        worth = {each: self._gain(each, own) for each in self.likeness if each not in self.defects}
        least = self._gain(defect, own) - margin
        return sorted((each for each in worth if worth[each] >= least), key=lambda each: -worth[each])

    def _gain(self, defect: str, failures: Mapping[str, float]) -> float:
        """What a defect gains from these failures alone. Each has what it says for another defect already."""
        row = self.likeness[defect]
        return sum(max(row.get(identity, 0.0) - best, 0.0) for identity, best in failures.items()) - self._price[defect]

    def _worth(self, best: Mapping[str, float], besides: Collection[str]) -> dict[str, float]:
        """What each other defect would gain."""
        return {each: self._added(each, best) for each in self.likeness if each not in besides}

    def _search(self) -> list[str]:
        chosen = self._grown([])
        for _ in range(_EXCHANGES):
            exchanged = self._exchanged(chosen)
            if exchanged is None:
                break
            chosen = self._grown(exchanged)
        return chosen

    def _grown(self, chosen: Sequence[str]) -> list[str]:
        """The set, with more defects as long as each gains."""
        grown = list(chosen)
        while worth := self._worth(self._best(grown), grown):
            first = max(worth, key=worth.__getitem__)
            if worth[first] <= 0:
                break
            grown.append(first)
        return grown

    def _exchanged(self, chosen: Sequence[str]) -> list[str] | None:
        """The set without one defect, or with another in its place, if that gains."""
        for defect in chosen:
            others = [each for each in chosen if each != defect]
            best = self._best(others)
            here = self._added(defect, best)
            worth = self._worth(best, chosen)
            first = max(worth, key=worth.__getitem__, default=None)
            if first is not None and worth[first] > max(here, 0.0) + _NOTHING:
                return [*others, first]
            if here < 0:
                return others
        return None

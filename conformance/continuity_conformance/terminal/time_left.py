"""How long a run still takes, judged by when each requirement was decided in a measured run of the bundled server.

Requirements differ: many are decided in the first seconds, a few at the very end. So each counts as much as the measured run went on while it was decided, smoothed over its
neighbours, because their order changes from run to run. `python tools/decided_at.py` measures such a run and writes `decided_at.json`.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from continuity_conformance.core.verdicts import Result, Verdict
from continuity_spec import Requirement

FILE: Final = Path(__file__).with_name("decided_at.json")
_PLAYED: Final = frozenset({"scenario", "check"})
_AT_ONCE: Final = frozenset({Verdict.NOT_APPLICABLE, Verdict.NOT_TESTED})
"""Verdicts that mostly come without playing anything. They say nothing about speed."""
_NEIGHBOURS: Final = 4


class TimeLeft:
    """The weights of the requirements of a run."""

    def __init__(self, requirements: Sequence[Requirement], decided_at: Mapping[str, float] | None = None) -> None:
        known = weights(decided_at if decided_at is not None else json.loads(FILE.read_text(encoding="utf-8")))
        usual = median(known.values()) if known else 1.0
        self._weights = {each.id: known.get(each.id, usual) for each in requirements if each.how in _PLAYED}

    def seconds(self, decided: Sequence[Result], elapsed: float) -> float | None:
        """How many seconds are left. None if nothing was played yet."""
        at_once = {result.id for result in decided if result.verdict in _AT_ONCE}
        played = {result.id for result in decided} - at_once
        done = sum(weight for id_, weight in self._weights.items() if id_ in played)
        left = sum(weight for id_, weight in self._weights.items() if id_ not in played | at_once)
        return elapsed * left / done if done else None


def weights(decided_at: Mapping[str, float]) -> dict[str, float]:
    """How much of the measured run each requirement stands for."""
    order = sorted(decided_at, key=lambda id_: decided_at[id_])
    times = [0.0, *(decided_at[id_] for id_ in order)]
    found = {}
    for place, id_ in enumerate(order):
        first, last = max(0, place - _NEIGHBOURS), min(len(order) - 1, place + _NEIGHBOURS)
        found[id_] = (times[last + 1] - times[first]) / (last - first + 1)
    return found

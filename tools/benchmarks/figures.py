"""The figures of a run, as they are stored: every round of every measurement. Medians, ratios and spreads are computed from them."""

import json
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from load import LoadFailedError
from scaling import Cost
from suite_speed import SuiteTime
from turns import Measured

FILE: Final = Path(__file__).parents[2] / "docs" / "reference" / "benchmarks.json"


class NothingMeasuredError(ValueError):
    """There is no figure: that part was not measured, or the server that is compared with answered nothing in any round."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some figures, and the smallest and the largest of them."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        if not values:
            raise NothingMeasuredError("No round has such a figure: measure it (bench.py --only …).")
        return cls(statistics.median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures of one run, and where it ran."""

    machine: Mapping[str, Any]
    turns: list[Measured] = field(default_factory=list)
    scaling: list[Cost] = field(default_factory=list)
    suite: list[SuiteTime] = field(default_factory=list)

    def of_turns(self, kind: str, clients: int, server: str, what: str) -> list[float]:
        """One figure of a server, round by round."""
        return [
            getattr(one, what)
            for one in sorted(self.turns, key=lambda one: one.round)
            if (one.kind, one.clients, one.server) == (kind, clients, server)
        ]

    def of_scaling(self, what: str, size: int, figure: str) -> list[float]:
        return [
            getattr(one, figure)
            for one in sorted(self.scaling, key=lambda one: one.round)
            if (one.what, one.size) == (what, size)
        ]

    def rate_ratio(self, kind: str, clients: int, other: str) -> Spread:
        """Turns a second of the reference server, divided by those of another server in the same round."""
        return ratio(self.of_turns(kind, clients, "reference", "rate"), self.of_turns(kind, clients, other, "rate"))

    def cost_ratio(self, what: str, size: int, smaller: int, figure: str = "cpu") -> Spread:
        return ratio(self.of_scaling(what, size, figure), self.of_scaling(what, smaller, figure))

    def of_suite(self, what: str, figure: str = "seconds") -> list[float]:
        """One figure of the runs of the suite, round by round."""
        return [getattr(one, figure) for one in sorted(self.suite, key=lambda one: one.round) if one.what == what]

    def replay_ratio(self) -> Spread:
        """The complete suite, divided by a bare replay of its requests and the start-up."""
        replay = [sum(pair) for pair in zip(self.of_suite("replay"), self.of_suite("start-up"), strict=True)]
        return ratio(self.of_suite("complete"), replay)

    def sizes(self, what: str) -> list[int]:
        return sorted({one.size for one in self.scaling if one.what == what})

    def clients(self) -> list[int]:
        return sorted({one.clients for one in self.turns})


def ratio(ours: Iterable[float], theirs: Iterable[float]) -> Spread:
    """Divide round by round: what disturbs a round disturbs both sides of it. A round in which the other side measured nothing is left out."""
    ratios = [one / other for one, other in zip(ours, theirs, strict=True) if other]
    if not ratios:
        raise NothingMeasuredError("No round has figures to divide by: measure longer (--seconds, --rounds).")
    return Spread.of(ratios)


@contextmanager
def failing_in_one_line() -> Iterator[None]:
    """End the program with one line, where nothing could be measured."""
    try:
        yield
    except (LoadFailedError, NothingMeasuredError) as error:
        sys.exit(f"{Path(sys.argv[0]).name}: {error}")


def write(figures: Figures, file: Path = FILE) -> None:
    """One line for each measurement, so that a change is easy to read in a diff."""
    turns = ",\n".join(f"  {json.dumps(_rounded(asdict(one)))}" for one in figures.turns)
    scaling = ",\n".join(f"  {json.dumps(_rounded(asdict(one)))}" for one in figures.scaling)
    suite = ",\n".join(f"  {json.dumps(_rounded(asdict(one)))}" for one in figures.suite)
    machine = json.dumps(dict(figures.machine))
    lists = f' "turns": [\n{turns}\n ],\n "scaling": [\n{scaling}\n ],\n "suite": [\n{suite}\n ]\n'
    text = f'{{\n "machine": {machine},\n{lists}}}\n'
    file.write_text(text, encoding="utf-8")


def read(file: Path = FILE) -> Figures:
    return parsed(json.loads(file.read_text(encoding="utf-8")))


def parsed(value: Mapping[str, Any]) -> Figures:
    return Figures(
        value["machine"],
        [Measured(**one) for one in value["turns"]],
        [Cost(**one) for one in value["scaling"]],
        [SuiteTime(**one) for one in value.get("suite", ())],
    )


def _rounded(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in values.items()}

"""The figures of a run, as they are stored: every round of every measurement. Medians, ratios and spreads are computed from them."""

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from scaling import Cost
from turns import Measured

FILE: Final = Path(__file__).parents[2] / "docs" / "reference" / "benchmarks.json"


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some figures, and the smallest and the largest of them."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(statistics.median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures of one run, and where it ran."""

    machine: Mapping[str, Any]
    turns: list[Measured] = field(default_factory=list)
    scaling: list[Cost] = field(default_factory=list)

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

    def sizes(self, what: str) -> list[int]:
        return sorted({one.size for one in self.scaling if one.what == what})

    def clients(self) -> list[int]:
        return sorted({one.clients for one in self.turns})


def ratio(ours: Iterable[float], theirs: Iterable[float]) -> Spread:
    """Divide round by round: what disturbs a round disturbs both sides of it."""
    return Spread.of([one / other for one, other in zip(ours, theirs, strict=True)])


def write(figures: Figures, file: Path = FILE) -> None:
    """One line for each measurement, so that a change is easy to read in a diff."""
    turns = ",\n".join(f"  {json.dumps(_rounded(asdict(one)))}" for one in figures.turns)
    scaling = ",\n".join(f"  {json.dumps(_rounded(asdict(one)))}" for one in figures.scaling)
    machine = json.dumps(dict(figures.machine))
    text = f'{{\n "machine": {machine},\n "turns": [\n{turns}\n ],\n "scaling": [\n{scaling}\n ]\n}}\n'
    file.write_text(text, encoding="utf-8")


def read(file: Path = FILE) -> Figures:
    return parsed(json.loads(file.read_text(encoding="utf-8")))


def parsed(value: Mapping[str, Any]) -> Figures:
    return Figures(
        value["machine"], [Measured(**one) for one in value["turns"]], [Cost(**one) for one in value["scaling"]]
    )


def _rounded(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in values.items()}

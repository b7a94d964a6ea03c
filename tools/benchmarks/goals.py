"""What the reference server and the suite are to reach, held against the figures of a run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from figures import Figures, NothingMeasuredError, Spread, ratio


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal: what is measured, its bound, and whether the bound is the least or the most that it may be."""

    words: str
    measured: Callable[[Figures], float]
    bound: float
    at_least: bool

    def figure(self, figures: Figures) -> float | None:
        """What was measured; None if this part of the benchmarks was not run yet."""
        try:
            return self.measured(figures)
        except NothingMeasuredError:
            return None

    def is_met(self, figures: Figures) -> bool:
        value = self.figure(figures)
        return value is not None and (value >= self.bound if self.at_least else value <= self.bound)


def _growth(what: str, smaller: int, larger: int, figure: str = "cpu") -> Callable[[Figures], float]:
    return lambda figures: figures.cost_ratio(what, larger, smaller, figure).median


def _rate(clients: int, other: str) -> Callable[[Figures], float]:
    return lambda figures: figures.rate_ratio("plain", clients, other).median


def _seconds(what: str) -> Callable[[Figures], float]:
    return lambda figures: Spread.of(figures.of_suite(what)).median


GOALS: Final = (
    Goal("turns a second with 64 clients, divided by those of the bare handler", _rate(64, "bare"), 0.5, at_least=True),
    Goal("the same, divided by those of the handler with an insert", _rate(64, "insert"), 1.0, at_least=True),
    Goal("with 1 client, divided by those of the handler with an insert", _rate(1, "insert"), 0.7, at_least=True),
    Goal(
        "cost of a turn with 1,000,000 sessions, divided by that with 1,000",
        _growth("sessions", 1_000, 1_000_000),
        1.2,
        at_least=False,
    ),
    Goal(
        "cost of a turn in a chain of 1,000 links, divided by that of 1 link",
        _growth("links in the chain", 1, 1_000),
        1.2,
        at_least=False,
    ),
    Goal(
        "cost of a turn with 10,000 turns of history, divided by that with 1,000 (linear: 10)",
        _growth("turns in the history", 1_000, 10_000),
        10.0,
        at_least=False,
    ),
    Goal(
        "memory with 1,000,000 sessions, divided by that with 1,000",
        _growth("sessions", 1_000, 1_000_000, "memory"),
        1.2,
        at_least=False,
    ),
    Goal("seconds of the complete suite, start to verdict", _seconds("complete"), 12.0, at_least=False),
    Goal(
        "the complete suite, divided by a bare replay of its requests and the start-up",
        lambda figures: figures.replay_ratio().median,
        2.0,
        at_least=False,
    ),
    Goal("seconds of the class Core", _seconds("Core"), 3.0, at_least=False),
    Goal(
        "the complete suite with 300 ms a turn, divided by its longest chain and its disturbing scenarios",
        lambda figures: ratio(figures.of_suite("slow"), figures.of_suite("slow at least")).median,
        1.3,
        at_least=False,
    ),
)

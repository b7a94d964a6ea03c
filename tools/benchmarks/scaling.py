"""What a turn costs when much is stored: sessions, turns of one history, links of one chain, slugs and responses.

For each question there is one server for each size, and they are measured in turn. The cost of a turn is the time that the server has a core, which is steadier
on a busy machine than the time that the client waits. Memory is what the process holds after the turns, files not counted.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import dialogue
import fill
import load
from servers import Server, reference

_BIG_CONTEXT: Final = ("--context", "1000000000")
_KEEP_ALL: Final = ("--max-responses", "100000000")
_SCATTER: Final = 7919


@dataclass(frozen=True, slots=True)
class Question:
    """What grows, how far, how it is filled, and the turn that is measured (from the size and the number of the turn).

    `share_of_turns`: a long turn is measured less often.
    """

    what: str
    sizes: tuple[int, ...]
    fill: Callable[[Path, int], None]
    turn: Callable[[int, int], bytes]
    arguments: tuple[str, ...] = ()
    share_of_turns: float = 1.0


@dataclass(frozen=True, slots=True)
class Cost:
    """One size in one round: microseconds of a core for a turn, milliseconds that the client waited, and bytes of memory."""

    what: str
    size: int
    round: int
    cpu: float
    p50: float
    memory: int


def _scattered(size: int, turn: int) -> int:
    return turn * _SCATTER % size + 1


QUESTIONS: Final = (
    Question(
        "sessions",
        (1_000, 10_000, 100_000, 1_000_000),
        fill.sessions,
        lambda size, turn: dialogue.chat(f"s-{_scattered(size, turn)}"),
    ),
    Question(
        "turns in the history",
        (10, 100, 1_000, 10_000),
        fill.history,
        lambda _size, _turn: dialogue.chat(fill.LONG_SESSION),
        _BIG_CONTEXT,
        share_of_turns=0.2,
    ),
    Question(
        "links in the chain",
        (1, 10, 100, 1_000),
        fill.chain,
        lambda _size, _turn: dialogue.chat(fill.ROOT_OF_CHAIN),
        _BIG_CONTEXT,
    ),
    Question(
        "slugs",
        (1_000, 10_000, 100_000, 1_000_000),
        fill.slugs,
        lambda size, turn: dialogue.respond(conversation=f"slug-{_scattered(size, turn)}"),
    ),
    Question(
        "stored responses",
        (100, 1_000, 10_000, 100_000),
        fill.responses,
        lambda _size, turn: dialogue.respond(conversation=f"new-{turn}"),
        _KEEP_ALL,
    ),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """How often each size is measured, with how many turns, and the largest size."""

    rounds: int
    turns: int
    largest: int = 1_000_000


def measure(folder: Path, plan: Plan) -> Iterator[Cost]:
    for number, question in enumerate(QUESTIONS):
        here = folder / str(number)
        here.mkdir()
        yield from _answered(here, question, plan)


def _answered(folder: Path, question: Question, plan: Plan) -> Iterator[Cost]:
    with ExitStack() as stack:
        servers: dict[int, Server] = {}
        for size in (size for size in question.sizes if size <= plan.largest):
            database = folder / f"{size}.db"
            question.fill(database, size)
            stack.callback(database.unlink)
            servers[size] = stack.enter_context(reference(database, *question.arguments))
        for number in range(-1, plan.rounds):
            for size, server in servers.items():
                cost = _cost(question, size, server, number, max(int(plan.turns * question.share_of_turns), 1))
                if number >= 0:  # the first round warms up
                    yield cost


def _cost(question: Question, size: int, server: Server, number: int, turns: int) -> Cost:
    """The turns of a round go on where those of the last one stopped."""
    first = (number + 1) * turns
    before = server.cpu_seconds()
    latencies = load.in_a_row(server.port, (question.turn(size, first + turn) for turn in range(turns)))
    spent = (server.cpu_seconds() - before) / turns
    p50 = sorted(latencies)[turns // 2]
    return Cost(question.what, size, number, spent * 1e6, p50 * 1e3, server.memory_bytes())

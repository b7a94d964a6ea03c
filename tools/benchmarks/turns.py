"""How many durable turns a second: the reference server beside a bare aiohttp handler, and beside one that makes one durable insert.

All servers run all the time, and take turns of a second or two each, so that a busy minute of the machine hits all of them alike.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import dialogue
import load
from servers import Server, reference, yardstick

CLIENTS: Final = (1, 8, 64)
KINDS: Final = ("plain", "stream")
SERVERS: Final = ("reference", "bare", "insert")


@dataclass(frozen=True, slots=True)
class Plan:
    """How long is measured."""

    rounds: int
    seconds: float
    clients: tuple[int, ...] = CLIENTS


@dataclass(frozen=True, slots=True)
class Measured:
    """One server in one round: turns a second, and milliseconds that half and 99 of 100 turns took at most."""

    kind: str
    clients: int
    server: str
    round: int
    rate: float
    p50: float
    p99: float
    cpu: float


def measure(folder: Path, plan: Plan) -> Iterator[Measured]:
    with ExitStack() as stack:
        first = stack.enter_context(reference(folder / "reference.db"))
        answers = _answers(first, folder)
        servers = {
            "reference": first,
            "bare": stack.enter_context(yardstick(*answers)),
            "insert": stack.enter_context(yardstick(*answers, "--insert", str(folder / "insert.db"))),
        }
        for kind in KINDS:
            for clients in plan.clients:
                for number in range(plan.rounds):
                    for name, server in servers.items():
                        yield measure_one(Case(kind, clients, name, number), server, plan.seconds)


@dataclass(frozen=True, slots=True)
class Case:
    """What is measured next."""

    kind: str
    clients: int
    server: str
    round: int


def measure_one(case: Case, server: Server, seconds: float) -> Measured:
    path = dialogue.CHAT if case.server == "reference" else f"/{case.kind}"
    mark = f"{case.kind}-{case.clients}-{case.round}"

    def requests(client: int, turn: int) -> bytes:
        session = f"{mark}-{client}-{turn // dialogue.TURNS_A_SESSION}"
        return dialogue.chat(session, stream=case.kind == "stream", path=path)

    before = server.cpu_seconds()
    measured = load.run(server.port, case.clients, seconds, requests)
    spent = (server.cpu_seconds() - before) / max(measured.all_answers, 1)
    p50, p99 = (measured.slowest_of(share) * 1e3 for share in (0.5, 0.99))
    return Measured(case.kind, case.clients, case.server, case.round, measured.rate, p50, p99, spent * 1e6)


def _answers(server: Server, folder: Path) -> list[str]:
    """Have one turn of each kind, and give the bare handlers its bytes."""
    plain = load.once(server.port, dialogue.chat("first"))
    stream = load.once(server.port, dialogue.chat("second", stream=True))
    (folder / "plain").write_bytes(dialogue.body_of(plain))
    (folder / "stream").write_text(json.dumps(dialogue.pieces_of(stream)), encoding="utf-8")
    return ["--answer", str(folder / "plain"), "--stream", str(folder / "stream")]

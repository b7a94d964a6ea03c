"""The soak: 20,000 generated requests against the bundled server, and what became of it.

Counts answers of 5xx, asks with the other principal's key for what the first has stored, looks whether the process is still the same, and how its
memory grew after a warm-up. Prints the figures, and ends with 1 where one of them is not as it must be.

    python tools/benchmarks/fuzz_soak.py [--requests N] [--seed S]
"""

import argparse
import asyncio
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

from continuity_conformance.core.budget import Budget
from continuity_conformance.fuzz.generated.campaign import run_campaign
from continuity_conformance.fuzz.names import RunNames
from continuity_conformance.fuzz.sync_client import SyncClient, run_in_thread
from continuity_conformance.http.messages import Answer, Request, dig
from continuity_conformance.results.redaction import redactor_of
from continuity_conformance.run.scheduler import Scheduler
from continuity_conformance.scenario.context import Context
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile

_EXAMPLES: Final = 20
_WARM_UP: Final = 0.25
_ALLOWED_GROWTH: Final = 0.10
_ASKED_FOREIGN: Final = 2_000
_MEASURED_EVERY: Final = 250
_SERVER_ERROR: Final = 500
_OK: Final = 200


@dataclass
class Soak:
    """What was seen. `memory` is (requests, MiB) over time."""

    statuses: Counter[int] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    sessions: dict[str, None] = field(default_factory=dict)
    responses: dict[str, None] = field(default_factory=dict)
    memory: list[tuple[int, float]] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)

    @property
    def sent(self) -> int:
        return self.statuses.total()

    def hear(self, request: Request, answer: Answer, header: str, pid: int) -> None:
        """Count an answer, and remember what the principal now has."""
        self.statuses[answer.status] += 1
        if answer.status == 0 or answer.status >= _SERVER_ERROR:
            self.errors.append(f"{request.method} {request.path}: {answer.status} {answer.error}")
        self.sessions.update(dict.fromkeys(answer.fields(header)))
        identity = dig(answer.body, "id")
        if request.path == "/v1/responses" and isinstance(identity, str):
            self.responses[identity] = None
        if self.sent % _MEASURED_EVERY == 0:
            self.memory.append((self.sent, memory_of(pid)))


def memory_of(pid: int) -> float:
    """The resident memory of a process, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


async def soaked(requests: int, seed: int) -> tuple[Soak, int, int]:
    """Play campaigns, each with a new seed, until so many requests were sent; then ask as somebody else."""
    profile = reference_profile()
    scheduler = Scheduler(resolve(None, profile), redactor_of(profile))
    await scheduler.open()
    soak = Soak()
    try:
        process = scheduler.context.server.started
        assert process is not None
        before = process.pid
        while soak.sent < requests:
            await _one(scheduler.context, soak, before, Budget(_EXAMPLES, seed))
            seed += 1
            sys.stderr.write(f"{soak.sent} requests, {memory_of(before):.1f} MiB\n")
        await run_in_thread(scheduler.context, lambda client: _ask_as_bob(client, soak))
        return soak, before, process.pid
    finally:
        await scheduler.close()


async def _one(context: Context, soak: Soak, pid: int, budget: Budget) -> None:
    def recorded(client: SyncClient) -> None:
        client.on_answer = lambda request, answer: soak.hear(request, answer, client.target.header, pid)
        run_campaign(client, RunNames.of(context, budget.seed), budget)

    await run_in_thread(context, recorded)


def _ask_as_bob(client: SyncClient, soak: Soak) -> None:
    """ISOLATE-06: what is somebody else's is as unknown as what never was."""
    paths = [f"/v1/sessions/{quote(name, safe='')}" for name in [*soak.sessions][-_ASKED_FOREIGN:]]
    paths += [f"/v1/responses/{quote(name, safe='')}" for name in [*soak.responses][-_ASKED_FOREIGN:]]
    for path in paths:
        answer = client.send(client.request("GET", path, principal="bob"))
        if answer.status == _OK:
            soak.leaks.append(path)
    listed = client.send(client.request("GET", "/v1/sessions?limit=100", principal="bob"))
    soak.leaks += [f"listed: {dig(one, 'id')}" for one in dig(listed.body, "data") or []]  # type: ignore[attr-defined]


def growth(soak: Soak) -> tuple[float, float, float]:
    """The memory after the warm-up, at the end, and the difference as a share."""
    after = [used for sent, used in soak.memory if sent >= soak.sent * _WARM_UP]
    window = max(1, len(after) // 5)
    first, last = sum(after[:window]) / window, sum(after[-window:]) / window
    return first, last, (last - first) / first


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started = time.monotonic()
    soak, before, after = asyncio.run(soaked(options.requests, options.seed))
    first, last, grown = growth(soak)
    seconds = time.monotonic() - started
    classes = Counter(f"{status // 100}xx" for status in soak.statuses.elements())
    sys.stdout.write(
        f"requests            {soak.sent} in {seconds:.0f} s\n"
        f"answers             {dict(sorted(classes.items()))}\n"
        f"5xx or no answer    {len(soak.errors)}\n"
        f"sessions, responses {len(soak.sessions)}, {len(soak.responses)}\n"
        f"leaks to bob        {len(soak.leaks)}\n"
        f"process             {'the same' if before == after else 'RESTARTED'} ({before})\n"
        f"memory              {first:.1f} MiB after the warm-up, {last:.1f} MiB at the end: {grown:+.1%}\n"
    )
    sys.stdout.writelines(f"  {line}\n" for line in [*soak.errors[:5], *soak.leaks[:5]])
    return int(bool(soak.errors or soak.leaks) or before != after or abs(grown) > _ALLOWED_GROWTH)


if __name__ == "__main__":
    sys.exit(main())

"""Servers that do not keep the contract pass nothing. Every requirement has a result, but where a run ends before any: a refused key and a closed port are
told at once, and so is a server on which no turn succeeds.
"""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from hostile import SERVERS
from plausible import MEMORIES

from continuity_conformance.core.budget import Budget
from continuity_conformance.core.errors import UnreachableError, UsageError
from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.run.first_answer import reach
from continuity_conformance.run.session import Run
from continuity_conformance.target.control_context import HttpControl
from continuity_conformance.target.profile import Limits, Process, Profile
from continuity_conformance.target.resolve import resolve
from continuity_spec import load_spec

FOLDER = Path(__file__).parents[1] / "servers"
KEYS = {"alice": "key-of-alice-0123456789", "bob": "key-of-bob-0123456789"}
STARTED = {"200 {}", "echoed headers", "constant ids", "random ids"}
"""Hostile servers that the kit starts itself, so that restarts and kills are played on them too. Others would never be ready, or not in time."""
UNTELLING = "stateless, telling nothing"
"""The same server with a profile that makes as much as can be not applicable: what nobody offers or tells, nobody can do wrong."""
OPTIONS = {
    UNTELLING: {"tells": "nothing", "derivation": "none", "environment": "none", "compaction": "in-place"},
}
LITTLE = Budget(examples=1)
"""What one example refutes, twelve refute too: fewer let more pass, and never less."""
TURN_SECONDS = 8
"""How long a turn of servers with a memory is waited for: as long as in the matrix. The one with one session lets every turn wait behind a slow one, so a run
there is mostly waiting: 210 s with 20 s a turn, 105 s with 8, and the verdicts are the same."""
REFUSING = {
    "400": UsageError,
    "404": UnreachableError,
    "500": UnreachableError,
    "HTML": UnreachableError,
    "hangs": UnreachableError,
    "dribbles": UnreachableError,
    "hangs up": UnreachableError,
}
"""Hostile servers on which no turn succeeds: a run ends before it plays anything."""
NAMES = sorted({*SERVERS, *MEMORIES, UNTELLING} - {"401", *REFUSING})


def hostile_process(name: str) -> Process:
    return Process((sys.executable, str(FOLDER / "hostile.py"), name, "{port}"))


def plausible_process(name: str) -> Process:
    keys = [f"--key={key}" for key in KEYS.values()]
    given = ("--port={port}", "--model={probe}", "--folder={folder}", *keys)
    return Process((sys.executable, str(FOLDER / "plausible.py"), name, *given), alone=("--responses=40",))


@contextmanager
def running(name: str):
    """The address of a hostile server that is already there when the kit comes."""
    command = [sys.executable, str(FOLDER / "hostile.py"), name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            yield server.stdout.readline().removeprefix("listening on ").strip()
        finally:
            server.kill()


def verdicts(url: str | None, profile: Profile) -> dict[str, Verdict]:
    requirements = load_spec().requirements
    with Run(resolve(url, profile), requirements, LITTLE) as run:
        return {requirement.id: run.result(requirement.id).verdict for requirement in requirements}


def verdicts_on(name: str) -> dict[str, Verdict]:
    """With as much given to the target as it can take: two principals, restarts, evictions, and where it asks a model, the probe."""
    memory = name.partition(",")[0]
    if memory in MEMORIES:
        # A thousand ids are a thousand turns: too many for those that remember each of them.
        ids = 300 if memory == "stateless" else 20
        limits = Limits(parallel=32, turn_seconds=TURN_SECONDS, responses=40, ids=ids)
        evict = {"evict": HttpControl("DELETE /v1/responses/{response}")}
        return verdicts(
            None,
            Profile(
                name,
                principals=KEYS,
                options=OPTIONS.get(name, {}),
                limits=limits,
                process=plausible_process(memory),
                controls=evict,
            ),
        )
    profile = Profile(name, principals=KEYS, limits=Limits(parallel=64, turn_seconds=1))
    if name in STARTED:
        return verdicts(None, Profile(name, principals=KEYS, limits=profile.limits, process=hostile_process(name)))
    with running(name) as url:
        return verdicts(url, profile)


@pytest.mark.parametrize("name", NAMES)
def test_a_server_without_continuity_passes_nothing(name):
    """What passes here is a requirement that checks too little."""
    found = verdicts_on(name)

    assert {identity for identity, verdict in found.items() if verdict is Verdict.PASS} == set()
    assert [identity for identity, verdict in found.items() if verdict is Verdict.ERROR] == []
    assert Verdict.FAIL in found.values()


@pytest.mark.parametrize(("name", "error"), REFUSING.items())
def test_a_server_on_which_no_turn_succeeds_is_told_in_one_line(name, error):
    with pytest.raises(
        error, match=r"plain turn|no OpenAI-compatible server|no complete answer in 1 s, not even to GET"
    ) as refusal:
        verdicts_on(name)

    assert "\n" not in str(refusal.value)


def test_a_server_that_refuses_the_key_is_told_in_one_line():
    with pytest.raises(UsageError, match="refuses the key") as refusal:
        verdicts_on("401")

    assert "principals" in str(refusal.value)


def test_a_closed_port_is_unreachable_at_once():
    with pytest.raises(UnreachableError, match="Nothing answers"):
        reach(resolve("http://127.0.0.1:9"))

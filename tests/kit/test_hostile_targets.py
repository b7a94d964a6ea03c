"""Servers that do not keep the contract pass exactly what is written down here, and every requirement still has a result."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from hostile import SERVERS
from plausible import MEMORIES

from continuity_conformance.errors import UnreachableError, UsageError
from continuity_conformance.fuzz.budget import Budget
from continuity_conformance.profile import Limits, Process, Profile
from continuity_conformance.run import Run, reach
from continuity_conformance.site import HttpControl
from continuity_conformance.verdicts import Verdict
from continuity_spec import load

HERE = Path(__file__).parent
KEYS = {"alice": "key-of-alice-0123456789", "bob": "key-of-bob-0123456789"}
STARTED = {"200 {}", "echoed headers", "constant ids", "random ids"}
"""Hostile servers that the kit starts itself, so that restarts and kills are played on them too. Others would never be ready, or not in time."""
LITTLE = Budget(examples=1)
"""What one example refutes, twelve refute too: fewer let more pass, and never less."""
VALID = "all its answers are valid objects, whichever session they belong to"
MAY_PASS = {
    **{name: {} for name in SERVERS},
    "stateless": {"ISOLATE-08": "the ids of its answers have 128 random bits"},
    "one session": {
        "ECHO-12": VALID,
        "STREAM-01": "its streams have one id each, and are continued from: there is nowhere else to go on",
        "STREAM-02": "its streams end as they ought to",
    },
}
"""What each of them may pass, with the reason. A new server has to be put down here; what passes beyond this is a requirement that checks too little."""


def hostile_process(name: str) -> Process:
    return Process((sys.executable, str(HERE / "hostile.py"), name, "{port}"))


def plausible_process(name: str) -> Process:
    keys = [f"--key={key}" for key in KEYS.values()]
    given = ("--port={port}", "--model={probe}", "--folder={folder}", *keys)
    return Process((sys.executable, str(HERE / "plausible.py"), name, *given), alone=("--responses=40",))


@contextmanager
def running(name: str):
    """The address of a hostile server that is already there when the kit comes."""
    command = [sys.executable, str(HERE / "hostile.py"), name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            yield server.stdout.readline().removeprefix("listening on ").strip()
        finally:
            server.kill()


def verdicts(url: str | None, profile: Profile) -> dict[str, Verdict]:
    requirements = load().requirements
    with Run(url, profile, requirements, LITTLE) as run:
        return {requirement.id: run.result(requirement.id).verdict for requirement in requirements}


def verdicts_on(name: str) -> dict[str, Verdict]:
    """With as much given to the target as it can take: two principals, restarts, evictions, and where it asks a model, the probe."""
    if name in MEMORIES:
        # A thousand ids are a thousand turns: too many for those that remember each of them.
        limits = Limits(parallel=32, turn_seconds=20, responses=40, ids=1000 if name == "stateless" else 20)
        evict = {"evict": HttpControl("DELETE /v1/responses/{response}")}
        return verdicts(
            None,
            Profile(name, principals=KEYS, limits=limits, process=plausible_process(name), controls=evict),
        )
    profile = Profile(name, principals=KEYS, limits=Limits(parallel=64, turn_seconds=1))
    if name in STARTED:
        return verdicts(None, Profile(name, principals=KEYS, limits=profile.limits, process=hostile_process(name)))
    with running(name) as url:
        return verdicts(url, profile)


@pytest.mark.parametrize("name", sorted({*SERVERS, *MEMORIES} - {"401"}))
def test_a_server_without_continuity_passes_just_what_is_written_down(name):
    found = verdicts_on(name)

    assert {identity for identity, verdict in found.items() if verdict is Verdict.PASS} == set(MAY_PASS[name])
    assert [identity for identity, verdict in found.items() if verdict is Verdict.ERROR] == []
    assert Verdict.FAIL in found.values()


def test_a_server_that_refuses_the_key_is_told_in_one_line():
    with pytest.raises(UsageError, match="refuses our key") as refusal:
        verdicts_on("401")

    assert "principals" in str(refusal.value)


def test_a_closed_port_is_unreachable_at_once():
    with pytest.raises(UnreachableError, match="Nothing answers"):
        reach("http://127.0.0.1:9", None)

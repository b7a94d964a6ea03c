"""Servers that keep nothing of the contract pass nothing, and every requirement still has a result."""

import subprocess
import sys
from pathlib import Path

import pytest
from hostile import SERVERS

from continuity_conformance.errors import UnreachableError, UsageError
from continuity_conformance.run import Run, reach
from continuity_conformance.verdicts import Verdict
from continuity_spec import load

PROFILE = "limits: {turn_seconds: 1, parallel: 64}\n"


@pytest.fixture
def hostile(request):
    command = [sys.executable, str(Path(__file__).with_name("hostile.py")), request.param]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        yield server.stdout.readline().removeprefix("listening on ").strip()
        server.kill()


def verdicts(url: str, folder: Path) -> dict[str, Verdict]:
    profile = folder / "profile.yaml"
    profile.write_text(PROFILE)
    requirements = load().requirements
    run = Run(url, profile, requirements)
    try:
        run.open()
        return {requirement.id: run.result(requirement.id).verdict for requirement in requirements}
    finally:
        run.close()


@pytest.mark.parametrize("hostile", sorted(set(SERVERS) - {"401"}), indirect=True)
def test_a_hostile_server_passes_nothing(hostile, tmp_path):
    found = verdicts(hostile, tmp_path)

    assert [identity for identity, verdict in found.items() if verdict is Verdict.PASS] == []
    assert [identity for identity, verdict in found.items() if verdict is Verdict.ERROR] == []
    assert Verdict.FAIL in found.values()


@pytest.mark.parametrize("hostile", ["401"], indirect=True)
def test_a_server_that_refuses_the_key_is_told_in_one_line(hostile, tmp_path):
    with pytest.raises(UsageError, match="refuses our key") as refusal:
        verdicts(hostile, tmp_path)

    assert "principals" in str(refusal.value)


def test_a_closed_port_is_unreachable_at_once():
    with pytest.raises(UnreachableError, match="Nothing answers"):
        reach("http://127.0.0.1:9", None)

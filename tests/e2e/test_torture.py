"""`continuity torture`: short campaigns as a user runs them. The bundled server keeps every turn, and a defect is found and drawn."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import CONTINUITY

SHORT = ("--kills", "5", "--clients", "6", "--seed", "3", "--minutes", "3")
PROFILE = f"""
name: own
process:
  start: [{sys.executable}, -m, continuity_server, "--port={{port}}", "--db={{folder}}/own.db", "--model={{probe}}", "--key=alice=key-0123456789"]
principals: {{alice: $OWN_KEY}}
"""


def result(folder: Path) -> dict:
    return json.loads((folder / "continuity-torture" / "torture.json").read_text(encoding="utf-8"))


def test_the_bundled_server_keeps_every_turn(continuity, tmp_path):
    done = continuity("torture", *SHORT)
    told = result(tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "verdict: no violation   reference, seed 3" in done.stdout
    assert "again: continuity torture reference --seed 3 --kills 5 --clients 6" in done.stdout
    assert told["verdict"] == "no violation"
    assert told["violations"] == []
    assert sum(told["kills"].values()) == 5
    assert told["counts"]["read_back"] >= told["counts"]["answered"] > 50
    assert "no violation" in (tmp_path / "continuity-torture" / "torture.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("defect", "violation", "requirement"),
    [
        ("acknowledged-before-stored", "lost", "DURABLE-02"),
    ],
)
def test_a_defect_is_found_with_its_timeline(continuity, tmp_path, defect, violation, requirement):
    done = continuity("torture", *SHORT, "--stop-at-first", CONTINUITY_REFERENCE=f"--defect {defect}")
    violations = result(tmp_path)["violations"]
    found = [each for each in violations if (each["violation"], each["requirement"]) == (violation, requirement)]
    story = [(entry["lane"], entry["says"]) for entry in found[0]["timeline"]]
    page = (tmp_path / "continuity-torture" / "torture.html").read_text(encoding="utf-8")

    assert done.returncode == 1, done.stdout + done.stderr
    assert any(lane == "client" and " is sent" in says for lane, says in story)
    assert any(lane == "target" and "SIGKILL" in says for lane, says in story)
    assert any(lane == "target" and "started" in says for lane, says in story)
    assert [entry["lane"] for entry in found[0]["timeline"] if entry["wrong"]] == ["read back"]
    assert f"{requirement} is not met: " in done.stdout
    assert page.count("<svg") == min(len(result(tmp_path)["violations"]), 20)


def test_a_target_of_a_profile_is_killed_too(continuity, tmp_path):
    (tmp_path / "own.yaml").write_text(PROFILE, encoding="utf-8")

    done = continuity("torture", "own", "--profile", "own.yaml", *SHORT, OWN_KEY="key-0123456789")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "during a compression: the target offers no compression" in done.stdout
    assert "key-0123456789" not in done.stdout + (tmp_path / "continuity-torture" / "torture.json").read_text()


def test_a_campaign_that_is_stopped_tells_what_it_has(tmp_path, surroundings):
    command = [CONTINUITY, "torture", "--kills", "10000", "--clients", "4", "--seed", "1"]
    with subprocess.Popen(command, cwd=tmp_path, env=surroundings, stdout=subprocess.PIPE, text=True) as campaign:
        assert any("starting" not in line for line in campaign.stdout)
        campaign.send_signal(signal.SIGTERM)
        said, _ = campaign.communicate(timeout=60)

    assert campaign.returncode == 128 + signal.SIGTERM
    assert "because it was stopped" in said
    assert result(tmp_path)["stopped"]


def test_a_campaign_that_runs_out_of_time_is_incomplete(continuity):
    done = continuity("torture", "--kills", "10000", "--minutes", "0.02", "--clients", "4")

    assert done.returncode == 5
    assert "of 10000 kills, because the time was over" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["http://127.0.0.1:9"], "The kit did not start this target"),
        (["refrence"], 'There is no target "refrence"'),
        (["--kills", "0"], "--kills 0: this number cannot be used"),
        (["--minutes", "nan"], "--minutes nan: this number cannot be used"),
        (["--minutes", "-1"], "--minutes -1: this number cannot be used"),
        (["--clients", "0"], "--clients 0: this number cannot be used"),
        (["--replicas", "99"], "--replicas 99: this number cannot be used"),
        (["--profile", "missing.yaml"], "missing.yaml"),
    ],
)
def test_bad_input_is_one_line(at_once, arguments, says):
    done = at_once("torture", *arguments)

    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1

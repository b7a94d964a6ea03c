"""The target `reference-postgres`: three replicas behind one address keep what is about several processes, and what is broken across replicas is found."""

import json
import os
import subprocess

import pytest
from processes import CONTINUITY

AREAS = ("CONCUR", "DURABLE", "MIGRATE", "HISTORY-05")
"""What needs several processes, kills, old databases or a store that breaks."""
BROKEN = {"processes-do-not-wait": "CONCUR-01", "slug-raced-by-processes": "SLUG-12"}


def test_the_replicas_keep_what_is_about_processes_and_nothing_is_untested(continuity, tmp_path):
    done = continuity("check", "reference-postgres", "-k", " or ".join(AREAS), "--report", "report")
    results = json.loads((tmp_path / "report" / "results.json").read_text(encoding="utf-8"))
    verdicts = {each["id"]: each["verdict"] for each in results["requirements"] if each["id"].startswith(AREAS)}

    assert done.returncode in {0, 5}, done.stdout + done.stderr
    assert {"CONCUR-06", "DURABLE-02", "MIGRATE-07", "HISTORY-05"} <= verdicts.keys()
    assert set(verdicts.values()) <= {"pass", "not_applicable"}, verdicts


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_across_replicas_is_found(name, tmp_path):
    command = [CONTINUITY, "run", BROKEN[name], "--target", "reference-postgres"]
    environment = {**os.environ, "CONTINUITY_REFERENCE": f"--defect {name}"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{BROKEN[name]} (MUST): fail" in done.stdout


def test_single_replicas_are_killed_and_nothing_is_lost(continuity, tmp_path):
    options = ("--replicas", "3", "--kills", "4", "--clients", "8", "--seed", "3", "--minutes", "3")
    done = continuity("torture", "reference-postgres", *options)
    told = json.loads((tmp_path / "continuity-torture" / "torture.json").read_text(encoding="utf-8"))

    assert done.returncode == 0, done.stdout + done.stderr
    assert (told["verdict"], told["violations"]) == ("no violation", [])
    assert sum(told["kills"].values()) == 4
    assert "3 processes on the same data" in done.stdout

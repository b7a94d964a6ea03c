"""What can be known in a second is said in one line, with an exit code of its own and never a traceback."""

import json
import os
import socket
import sys
from pathlib import Path

import pytest

from continuity_conformance.suite.release import newest


@pytest.fixture
def closed_port() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def assert_one_line(text: str) -> None:
    assert text.startswith("continuity: ")
    assert len(text.splitlines()) == 1


def test_a_closed_port_is_one_line_and_code_3(run_pytest, closed_port: str):
    done = run_pytest("--target", closed_port)

    assert done.returncode == 3
    assert done.stdout == ""
    assert_one_line(done.stderr)


def test_a_closed_port_takes_less_than_two_seconds(run_pytest, closed_port: str):
    """Of processor time, which a busy machine does not change, and once Python has compiled what it imports."""
    run_pytest("--target", closed_port)
    before = os.times()
    run_pytest("--target", closed_port)
    after = os.times()

    assert (after.children_user + after.children_system) - (before.children_user + before.children_system) < 2


def test_a_closed_port_gives_a_report_without_a_pass(run_pytest, closed_port: str, folder: Path):
    run_pytest("--target", closed_port, "--continuity-report", "report")
    results = json.loads((folder / "report" / "results.json").read_text())

    assert results["verdict"] == "unreachable"
    assert results["complete"] is False
    assert results["counts"]["error"] == len(results["requirements"]) == len(newest().requirements)


def test_an_unknown_target_name_is_a_usage_error(run_pytest):
    done = run_pytest("--target", "refrence")

    assert done.returncode == 2
    assert_one_line(done.stderr)


def test_a_profile_that_is_not_there_is_a_usage_error(run_pytest, closed_port: str):
    done = run_pytest("--target", closed_port, "--continuity-profile", "missing.yaml")

    assert done.returncode == 2
    assert "missing.yaml" in done.stderr
    assert_one_line(done.stderr)


def test_a_report_folder_that_cannot_be_made_is_a_usage_error(run_pytest, closed_port: str, folder: Path):
    (folder / "taken").write_text("a file")
    done = run_pytest("--target", closed_port, "--continuity-report", "taken")

    assert done.returncode == 2
    assert_one_line(done.stderr)


def test_a_level_that_does_not_exist_is_refused_by_pytest(run_pytest, closed_port: str):
    done = run_pytest("--target", closed_port, "--continuity-fail-on", "PERHAPS")

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in done.stderr


def test_a_report_of_an_earlier_run_does_not_survive(run_pytest, closed_port: str, folder: Path):
    (folder / "results.json").write_text('{"verdict": "conformant"}')
    run_pytest("--target", closed_port, "--continuity-report", ".")

    assert json.loads((folder / "results.json").read_text())["verdict"] == "unreachable"


def test_a_target_that_dies_during_the_run_is_code_3_and_no_failure(run_pytest, folder: Path):
    server = Path(__file__).parents[2] / "servers" / "moody.py"
    start = json.dumps([sys.executable, str(server), "dies", "{port}", "{probe}"])
    (folder / "dies.yaml").write_text(f"name: dies\nprocess: {{start: {start}}}\nsingle_user: true\n")
    done = run_pytest(
        "--target", "reference", "--continuity-profile", "dies.yaml", "--continuity-report", ".", "-k", "HISTORY"
    )
    results = json.loads((folder / "results.json").read_text())

    assert done.returncode == 3
    assert "The target died during the run" in done.stderr
    assert (results["verdict"], results["counts"]["fail"]) == ("unreachable", 0)

"""The command `continuity`: help that gets one going, one line for what is wrong, and the exit codes."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from continuity_conformance.release import newest
from continuity_spec import load

CONTINUITY = str(Path(sys.executable).with_name("continuity"))


def continuity(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([CONTINUITY, *arguments], capture_output=True, text=True, timeout=60, check=False, **options)


def assert_one_line(text: str) -> None:
    assert text.startswith("continuity: ")
    assert len(text.splitlines()) == 1


@pytest.fixture
def closed_port() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_help_names_every_command_and_the_exit_codes():
    shown = continuity("--help")

    assert shown.returncode == 0
    assert all(f"\n    {name} " in shown.stdout for name in ("check", "run", "spec", "serve", "model", "defects"))
    assert "3 target unreachable" in shown.stdout


@pytest.mark.parametrize("command", ["check", "run", "spec", "model", "defects"])
def test_every_command_has_help(command: str):
    assert continuity(command, "--help").returncode == 0


def test_version_is_told():
    assert continuity("--version").stdout.startswith("continuity 0.")


def test_no_command_is_a_usage_error():
    assert continuity().returncode == 2


def test_a_closed_port_is_one_line_and_code_3(closed_port: str, tmp_path: Path):
    done = continuity("check", closed_port, "--report", str(tmp_path))

    assert done.returncode == 3
    assert done.stdout == ""
    assert_one_line(done.stderr)
    assert json.loads((tmp_path / "results.json").read_text())["verdict"] == "unreachable"


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "DERIVE-O4"),
        ("spec", "show", "DERIVE-O4"),
        ("check", "refrence"),
        ("check", "http://127.0.0.1:1", "--profile", "missing.yaml"),
    ],
)
def test_a_wrong_name_is_one_line_and_code_2(arguments: tuple[str, ...]):
    done = continuity(*arguments)

    assert done.returncode == 2
    assert_one_line(done.stderr)


def test_an_unknown_requirement_is_answered_with_the_nearest():
    assert 'Did you mean "DERIVE-04"?' in continuity("run", "DERVE-04").stderr


def test_run_of_a_closed_port_is_one_line_and_code_3(closed_port: str):
    done = continuity("run", "DERIVE-04", "--target", closed_port)

    assert done.returncode == 3
    assert_one_line(done.stderr)


def test_spec_list_has_the_whole_release():
    listed = json.loads(continuity("spec", "list", "--json").stdout)

    assert {row["id"] for row in listed} >= {requirement.id for requirement in newest().requirements}


def test_spec_list_is_readable_too():
    assert continuity("spec", "list").stdout.startswith(load().requirements[0].id)


def test_spec_show_takes_ids_in_any_case():
    shown = continuity("spec", "show", "derive-04", "ECHO-01")

    assert shown.returncode == 0
    assert "DERIVE-04 (MUST)" in shown.stdout
    assert "ECHO-01 (MUST)" in shown.stdout


def test_the_bundled_requirements_have_no_lint():
    assert continuity("spec", "lint").stdout == "nothing to report\n"


def test_lint_of_a_broken_file_ends_with_1(tmp_path: Path):
    (tmp_path / "broken.yaml").write_text("- id: X\n")
    done = continuity("spec", "lint", str(tmp_path / "broken.yaml"))

    assert done.returncode == 1
    assert "broken.yaml:1" in done.stdout


def test_serve_is_the_server_itself():
    shown = continuity("serve", "--help")

    assert shown.returncode == 0
    assert "--defect" in shown.stdout


def test_defects_are_listed():
    listed = json.loads(continuity("defects", "--json").stdout)

    assert {"name", "text", "issue"} <= listed[0].keys()
    assert listed[0]["name"] in continuity("defects").stdout


def test_a_reader_that_goes_away_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        done = subprocess.run(
            [CONTINUITY, "spec", "list"], stdout=closed, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )

    assert done.stderr == ""


def test_ctrl_c_ends_with_130():
    with subprocess.Popen([CONTINUITY, "model"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        running.stdout.readline()
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=20)

    assert running.returncode == 130
    assert "Traceback" not in said

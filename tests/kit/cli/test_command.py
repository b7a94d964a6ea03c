"""The command `continuity`: help that gets one going, one line for what is wrong, and the exit codes.

What is no matter of the process is asked without one.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from processes import CONTINUITY, started
from processes import called as continuity

from continuity_conformance.cli import main
from continuity_conformance.suite.release import newest
from continuity_spec import load_spec

COMMANDS = frozenset(main.COMMANDS)


def process(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([CONTINUITY, *arguments], capture_output=True, text=True, timeout=400, check=False, **options)


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
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert all(f"\n    {name}" in shown.stdout for name in COMMANDS)
    assert "3 target unreachable" in shown.stdout


@pytest.mark.parametrize("command", sorted(COMMANDS - {"serve"}))
def test_every_command_has_help(command: str):
    assert continuity(command, "--help").returncode == 0


def test_every_module_is_a_command_except_three():
    modules = {file.stem for file in Path(main.__file__).parent.rglob("*.py")}

    assert modules - COMMANDS == {"__init__", "main", "options", "spec_openapi"}


@pytest.mark.parametrize("arguments", [["--help"], ["model", "--help"]])
def test_only_the_command_that_was_asked_for_is_imported(arguments: list[str]):
    """In a process of its own, because here other tests have imported them."""
    code = (
        "import atexit, sys\n"
        "from continuity_conformance.cli.main import main\n"
        "imported = lambda: sorted(name for name in sys.modules if name.startswith('continuity_conformance.cli.'))\n"
        "atexit.register(lambda: sys.stderr.write(' '.join(imported())))\n"
        "main(sys.argv[1:])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    commands = {name.rpartition(".")[2] for name in done.stderr.split()} & COMMANDS

    assert commands == set(arguments) & COMMANDS


def test_version_is_told():
    assert process("--version").stdout.startswith("continuity 0.")


def test_no_command_is_a_usage_error():
    assert process().returncode == 2


def test_a_closed_port_is_one_line_and_code_3(closed_port: str, tmp_path: Path):
    done = process("check", closed_port, "--report", str(tmp_path))

    assert done.returncode == 3
    assert done.stdout == ""
    assert_one_line(done.stderr)
    assert json.loads((tmp_path / "results.json").read_text())["verdict"] == "unreachable"


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "DERIVE-O4"),
        ("spec", "show", "DERIVE-O4"),
        ("spec", "show", "SLUG-03", "--scenario", "again and agan"),
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
    assert continuity("spec", "list").stdout.startswith(f"{load_spec().classes[0].name}: ")


def test_spec_show_takes_ids_in_any_case():
    shown = continuity("spec", "show", "derive-04", "ECHO-01")

    assert shown.returncode == 0
    assert "DERIVE-04 (MUST, Derivation)" in shown.stdout
    assert "ECHO-01 (MUST, Core)" in shown.stdout


def test_spec_show_draws_the_dialogue_and_says_what_the_defects_break():
    shown = continuity("spec", "show", "SLUG-03").stdout

    assert "╪═ evict response $gone ═" in shown
    assert "slug-lost-on-eviction  A slug whose last response was evicted" in shown
    assert "is 404 for good. (hermes-agent 0.13.0)" in " ".join(shown.split())
    assert shown.count("server") == 1


def test_spec_show_draws_all_scenarios_or_the_one_that_is_asked_for():
    every = continuity("spec", "show", "SLUG-03", "--all").stdout
    one = continuity("spec", "show", "SLUG-03", "--scenario", "again and again").stdout

    assert every.count(" server ") == len(load_spec().requirement("SLUG-03").scenarios)
    assert '─ respond "white", conversation $slug ─' in one


def test_a_terminal_without_lines_is_drawn_to_in_ascii():
    shown = process("spec", "show", "SLUG-07", env=os.environ | {"PYTHONIOENCODING": "ascii"}).stdout

    assert shown.isascii()
    assert "->X" in shown


def test_a_python_check_is_shown_with_what_it_does():
    assert "by openai_client: an unmodified OpenAI client" in continuity("spec", "show", "ECHO-09").stdout


def test_the_bundled_requirements_have_no_lint():
    assert continuity("spec", "lint").stdout == "nothing to report\n"


def test_lint_of_a_broken_file_ends_with_1(tmp_path: Path):
    (tmp_path / "broken.yaml").write_text("- id: X\n")
    done = continuity("spec", "lint", str(tmp_path / "broken.yaml"))

    assert done.returncode == 1
    assert "broken.yaml:1" in done.stdout


def test_serve_is_the_server_itself():
    shown = process("serve", "--help")

    assert shown.returncode == 0
    assert "--defect" in shown.stdout


def test_defects_are_listed():
    listed = json.loads(continuity("defects", "--json").stdout)

    assert {"name", "text", "issue"} <= listed[0].keys()
    assert listed[0]["name"] in continuity("defects").stdout


def test_one_defect_is_told_with_all_that_fails_on_it():
    shown = continuity("defects", "refused-turn-stored").stdout

    assert "needs     degraded=refuse" in shown
    assert "continuity serve --defect refused-turn-stored --option degraded=refuse" in shown
    assert "  * HISTORY-05  plain turns · step 5 · sees" in shown


def test_an_unknown_defect_is_answered_with_the_nearest():
    done = continuity("defects", "history-double")

    assert done.returncode == 2
    assert_one_line(done.stderr)
    assert 'Did you mean "history-doubles"?' in done.stderr


@pytest.mark.parametrize("by", ["defect", "requirement"])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_matrix_is_told_whole_within_80_columns(by: str, encoding: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    told = continuity("defects", "--matrix", "--by", by, encoding=encoding).stdout
    data = json.loads(continuity("defects", "--matrix", "--by", by, "--json", encoding=encoding).stdout)

    assert max(map(len, told.splitlines())) <= 80
    assert all(f"\n{name}" in told for name in data)
    assert all(f" {cell} " in told for row in data.values() for cell in row)


def test_the_matrix_of_one_defect_is_its_row():
    assert list(json.loads(continuity("defects", "--matrix", "--json", "history-doubles").stdout)) == [
        "history-doubles"
    ]


def test_a_reader_that_goes_away_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        done = subprocess.run(
            [CONTINUITY, "spec", "list"], stdout=closed, stderr=subprocess.PIPE, text=True, timeout=400, check=False
        )

    assert done.stderr == ""


def test_ctrl_c_ends_with_130():
    with started([CONTINUITY, "model"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        running.stdout.readline()
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=20)

    assert running.returncode == 130
    assert "Traceback" not in said


def test_the_program_ends_without_freeing_the_objects_of_a_run(tmp_path):
    """That takes seconds after a run. What was registered for the end, such as the removal of a temporary folder, is done."""
    program = """
import sys, tempfile
from continuity_conformance.cli import main

class Freed:
    def __del__(self):
        print("freed", flush=True)

def run(arguments):
    main.kept = [Freed(), tempfile.TemporaryDirectory(dir=sys.argv[1])]
    print("said", end="")
    return 7

main._run = run
sys.exit(main.main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False, timeout=60
    )

    assert (done.returncode, done.stdout, done.stderr) == (7, "said", "")
    assert [*tmp_path.iterdir()] == []

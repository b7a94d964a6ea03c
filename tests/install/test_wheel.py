"""What a stranger gets: the built wheel in an environment of its own, a server in one process, pytest in an empty folder in another."""

import json
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command, cwd, check=True):
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The bin folder of a fresh environment with only the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("installed")
    pip = ("-m", "pip", "--disable-pip-version-check", "-q")
    run(sys.executable, *pip, "wheel", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    venv.create(folder / "env", with_pip=True)
    run(folder / "env/bin/python", *pip, "install", "--no-compile", *folder.glob("*.whl"), cwd=folder)
    return folder / "env/bin"


@pytest.fixture
def server(installed, tmp_path):
    command = [str(installed / "continuity"), "serve", "--port", "0", "--db", str(tmp_path / "c.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        yield process.stdout.readline().removeprefix("listening on ").strip()
        process.terminate()


def test_pytest_in_an_empty_folder_tests_what_can_be_tested(installed, server, tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    given = ("--target", server, "--continuity-report", tmp_path / "report", "--continuity-examples", "1")
    done = run(installed / "pytest", *given, cwd=folder, check=False)
    results = json.loads((tmp_path / "report/results.json").read_text())
    counts = results["counts"]

    assert done.returncode == 5, done.stdout + done.stderr
    assert "incomplete" in done.stdout
    assert counts["pass"] > 25
    assert counts["fail"] == counts["error"] == 0
    assert sum(counts.values()) == len(results["requirements"])
    assert all(
        entry["reason"] for entry in results["requirements"] if entry["verdict"] in {"not_tested", "not_applicable"}
    )
    assert list(folder.iterdir()) == []


def test_the_bundled_server_is_conformant(installed, tmp_path):
    done = run(installed / "continuity", "check", cwd=tmp_path)

    assert re.search(r"verdict: conformant +reference", done.stdout)


def test_pytest_without_a_target_is_as_it_was(installed, tmp_path):
    (tmp_path / "test_one.py").write_text("def test_one(): pass\n")
    done = run(installed / "pytest", "-q", cwd=tmp_path)

    assert "1 passed" in done.stdout
    assert "continuity" not in done.stdout


def test_the_matrix_comes_along(installed, tmp_path):
    done = run(installed / "continuity", "defects", "--matrix", "--json", cwd=tmp_path)

    assert "HISTORY-02" in json.loads(done.stdout)["history-doubles"]

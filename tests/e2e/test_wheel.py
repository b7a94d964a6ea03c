"""What a stranger gets: the built wheel in an environment of its own, a server in one process, pytest in an empty folder in another."""

import json
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import house_rules_package as house
import pytest

ROOT = Path(__file__).parents[2]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")
"""Ours also installs for the stranger, with `--python`: one of their own takes seconds to install, and is not what is tested."""
FOREIGN = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
ENVIRON = {name: value for name, value in os.environ.items() if name not in FOREIGN}
"""Nothing but the environment says where the kit is, and what was compiled once is kept there."""
AREAS = ("DERIVE", "ECHO", "SLUG")


def run(*command, cwd, check=True):
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=ENVIRON,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The bin folder of a fresh environment with only the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("installed")
    run(*PIP, "wheel", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    venv.create(folder / "env")
    pip = (*PIP, "--python", folder / "env/bin/python")
    run(*pip, "install", "--no-compile", *folder.glob("*.whl"), cwd=folder)
    return folder / "env/bin"


@pytest.fixture
def server(installed, tmp_path):
    command = [str(installed / "continuity"), "serve", "--port", "0", "--db", str(tmp_path / "c.db")]
    with subprocess.Popen(
        command, env=ENVIRON, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        yield process.stdout.readline().removeprefix("listening on ").strip()
        process.terminate()


def test_pytest_in_an_empty_folder_tests_what_can_be_tested(installed, server, tmp_path):
    """A few areas are enough for that; tests/kit/pytest does so with all of them, and the next test has the whole release."""
    folder = tmp_path / "empty"
    folder.mkdir()
    given = ("--target", server, "--continuity-report", tmp_path / "report", *AREAS)
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
    """The one whole run of all tests with the budget that everybody has."""
    done = run(installed / "continuity", "check", "--report", "report", cwd=tmp_path)
    results = house.results(tmp_path / "report")

    assert re.search(r"verdict: conformant +reference", done.stdout)
    assert results["verdict"] == "conformant"
    assert results["target"]["observed"] == "probe"


def test_pytest_without_a_target_is_as_it_was(installed, tmp_path):
    (tmp_path / "test_one.py").write_text("def test_one(): pass\n")
    done = run(installed / "pytest", "-q", cwd=tmp_path)

    assert "1 passed" in done.stdout
    assert "continuity" not in done.stdout


def test_the_matrix_comes_along(installed, tmp_path):
    done = run(installed / "continuity", "defects", "--matrix", "--json", cwd=tmp_path)

    assert "HISTORY-02" in json.loads(done.stdout)["history-doubles"]


# A package of somebody else's in the same environment, with a target and a pack.


@pytest.fixture(scope="module")
def with_house(installed, tmp_path_factory):
    """Built and installed as its users would; taken away again, so that the tests above find what they expect."""
    folder = tmp_path_factory.mktemp("house")
    pip = (*PIP, "--python", installed / "python")
    run(*pip, "install", "--no-deps", house.written(folder), cwd=folder)
    yield installed
    run(*pip, "uninstall", "--yes", "house-rules", cwd=folder)


def test_a_strangers_plugins_are_listed_with_their_package(with_house, tmp_path):
    told = " ".join(run(with_house / "continuity", "plugins", cwd=tmp_path).stdout.split())

    assert "house target The gateway of the house, with a version on every answer. from house-rules 2.1" in told
    assert "house pack Rules of the house" in told
    assert "house_rules.pack:HousePack" in told


def test_a_strangers_target_is_checked_by_a_strangers_pack(with_house, tmp_path):
    done = run(
        with_house / "continuity", "check", "house", "--area", "HOUSE", "--accept-untested", cwd=tmp_path, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\nHOUSE +3 +0 +0 +0\n", done.stdout)
    assert "pack house: conformant" in " ".join(done.stdout.split())


def test_one_requirement_of_a_strangers_pack_is_run(with_house, tmp_path):
    done = run(with_house / "continuity", "run", "HOUSE-01", "HOUSE-02", "--target", "house", cwd=tmp_path)

    assert "HOUSE-01 (MUST): pass" in done.stdout
    assert "HOUSE-02 (SHOULD): pass" in done.stdout


def test_pytest_knows_both(with_house, tmp_path):
    done = run(
        with_house / "pytest", "--target", "house", "-v", "HOUSE", "ECHO-01", "ECHO-02", cwd=tmp_path, check=False
    )

    assert done.returncode == 5, done.stdout + done.stderr
    assert "house.yaml::HOUSE-03 PASSED" in done.stdout
    assert "echo.yaml::ECHO-02 PASSED" in done.stdout
    assert list(tmp_path.iterdir()) == []

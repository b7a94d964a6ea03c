"""`pytest --target` finds the suite from any folder, and keeps out of everybody else's way."""

from pathlib import Path

import pytest

from continuity_conformance.suite.release import newest
from continuity_conformance.suite.select import node_id

NOWHERE = "http://127.0.0.1:9"
OWN_TARGET = 'def pytest_addoption(parser):\n    parser.addoption("--target", default="own")\n'


def collected(output: str) -> list[str]:
    return sorted(line for line in output.splitlines() if ".yaml::" in line)


def release() -> list[str]:
    return sorted(node_id(requirement) for requirement in newest().requirements)


def test_an_empty_folder_collects_the_whole_release_without_a_target(run_pytest):
    """Node ids name the file and the requirement."""
    done = run_pytest("--target", NOWHERE, "--collect-only", "-q")

    assert done.returncode == 0, done.stderr
    assert collected(done.stdout) == release()
    assert "derive.yaml::DERIVE-01" in done.stdout.splitlines()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("conftest.py", "raise RuntimeError('not for the suite')"),
        ("pytest.ini", "[pytest]\naddopts = tests --cov=x -k mine -x -n 2\n"),
        ("pytest.ini", "[pytest]\nfilterwarnings = error\ntestpaths = nowhere\npython_files = own_*.py\n"),
        ("pytest.ini", "[pytest]\nusefixtures = missing\ncache_dir = here\n"),
        ("pyproject.toml", "[tool.pytest.ini_options]\naddopts = '-p no:terminal'\n"),
        ("tox.ini", "[pytest]\naddopts = --strict-markers --strict-config -W error\n"),
    ],
)
def test_settings_of_the_folder_have_no_say(run_pytest, folder: Path, name: str, text: str):
    (folder / name).write_text(text)

    done = run_pytest("--target", NOWHERE, "--collect-only", "-q")

    assert done.returncode == 0, done.stderr
    assert collected(done.stdout) == release()
    assert {path.name for path in folder.iterdir()} <= {name, "__pycache__"}


def test_tests_of_the_folder_are_not_collected(run_pytest, folder: Path):
    (folder / "test_own.py").write_text("def test_own(): pass\n")

    done = run_pytest("--target", NOWHERE, "--collect-only", "-q")

    assert "test_own" not in done.stdout
    assert collected(done.stdout) == release()


def test_without_target_only_the_option_table_of_the_kit_is_imported(run_pytest, folder: Path):
    (folder / "test_own.py").write_text(
        "import sys\n"
        "def test_own():\n"
        "    kit = {name for name in sys.modules if name.startswith('continuity_')}\n"
        "    modules = {'core', 'core.option_table', 'pytest', 'pytest.options', 'pytest.plugin'}\n"
        "    assert kit == {'continuity_conformance', *(f'continuity_conformance.{name}' for name in modules)}\n"
    )

    done = run_pytest("-q")

    assert done.returncode == 0, done.stdout
    assert "continuity" not in done.stdout


def test_without_target_an_empty_folder_has_no_tests(run_pytest):
    assert run_pytest().returncode == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_projects_own_option_keeps_its_name(run_pytest, folder: Path):
    (folder / "conftest.py").write_text(OWN_TARGET)
    (folder / "test_own.py").write_text(
        "def test_own(request): assert request.config.getoption('target') == 'staging'\n"
    )

    done = run_pytest("--target", "staging")

    assert done.returncode == 0, done.stdout
    assert "To check a server use --continuity-target." in done.stdout


def test_another_plugins_option_keeps_its_name(run_pytest, folder: Path):
    (folder / "own_options.py").write_text(OWN_TARGET)
    (folder / "test_own.py").write_text(
        "def test_own(request): assert request.config.getoption('target') == 'staging'\n"
    )

    done = run_pytest("-p", "own_options", "--target", "staging")

    assert done.returncode == 0, done.stdout
    assert "--target belongs to another plugin here" in done.stdout


def test_where_the_name_is_taken_the_long_one_works(run_pytest, folder: Path):
    (folder / "conftest.py").write_text(OWN_TARGET)

    done = run_pytest("--continuity-target", NOWHERE, "--collect-only", "-q")

    assert collected(done.stdout) == release()


def test_a_taken_name_is_not_mentioned_in_runs_that_do_not_use_it(run_pytest, folder: Path):
    (folder / "conftest.py").write_text(OWN_TARGET)
    (folder / "test_own.py").write_text("def test_own(): pass\n")

    assert "continuity:" not in run_pytest().stdout


def test_help_shows_the_options(run_pytest):
    shown = run_pytest("--help").stdout

    assert "--target=URL|NAME" in shown
    assert "--continuity-profile=FILE" in shown


def test_k_selects_by_id(run_pytest):
    done = run_pytest("--target", NOWHERE, "--collect-only", "-q", "-k", "ECHO-03")

    assert collected(done.stdout) == ["echo.yaml::ECHO-03"]


@pytest.mark.parametrize("word", ["echo.yaml::ECHO-03", "ECHO-03", "echo-03"])
def test_a_pasted_id_is_a_selection(run_pytest, word: str):
    done = run_pytest("--target", NOWHERE, word, "--collect-only", "-q")

    assert collected(done.stdout) == ["echo.yaml::ECHO-03"]


def test_an_area_is_a_selection(run_pytest):
    done = run_pytest("--target", NOWHERE, "echo.yaml", "--collect-only", "-q")

    assert collected(done.stdout) == [name for name in release() if name.startswith("echo.yaml")]


def test_an_unknown_id_ends_with_the_nearest(run_pytest):
    done = run_pytest("--target", NOWHERE, "EHCO-03")

    assert done.returncode == 2
    assert done.stderr.startswith("continuity: EHCO-03: ")
    assert 'Did you mean "ECHO-03"?' in done.stderr


def test_a_path_is_no_requirement(run_pytest, folder: Path):
    (folder / "test_own.py").write_text("def test_own(): pass\n")

    done = run_pytest("--target", NOWHERE, "test_own.py")

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_pytest_addopts_counts_as_the_users_own(run_pytest):
    done = run_pytest("--target", NOWHERE, PYTEST_ADDOPTS="--collect-only -q -k ECHO-03 tests")

    assert collected(done.stdout) == ["echo.yaml::ECHO-03"]


@pytest.mark.parametrize("extra", [["-p", "no:cacheprovider"], ["-W", "error"]])
def test_usual_switches_do_no_harm(run_pytest, extra: list[str]):
    done = run_pytest("--target", NOWHERE, "--collect-only", "-q", *extra)

    assert done.returncode == 0, done.stderr

"""From one wheel: both commands work with uvx and pipx's way, completion can be loaded, and the Dockerfile names what there is."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", folder, ROOT], check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_has_the_name_that_readme_gives_it(wheel):
    assert f"dist/{wheel.name}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_uvx_runs_the_command_with_the_name_of_the_package(wheel, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    command = [
        BIN / "uv",
        "tool",
        "run",
        "--from",
        wheel,
        "session-continuity",
        "check",
        "-k",
        "ECHO-02",
        "--accept-untested",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=280
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "ECHO" in done.stdout


def test_both_names_are_the_same_command():
    assert PROJECT["scripts"]["session-continuity"] == PROJECT["scripts"]["continuity"]


def test_the_line_for_a_start_file_of_bash_works():
    script = f'eval "$({BIN / "continuity"} completion bash)" && complete -p continuity session-continuity'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("-F _continuity") == 2


def test_the_dockerfile_starts_a_command_of_the_package_and_runs_as_nobody_special():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")

    assert re.search(r'^ENTRYPOINT \["(\S+)"\]', text, re.MULTILINE)[1] in PROJECT["scripts"]  # type: ignore[index]
    assert "USER continuity" in text
    assert {line.split(":")[1].split("-")[0] for line in text.splitlines() if line.startswith("FROM python:")} == {
        "3.12"
    }

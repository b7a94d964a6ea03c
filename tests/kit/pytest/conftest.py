"""Real pytest processes in folders of their own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# Others' plugins, whose import is most of the time that a pytest process takes here.
LEAN = ("-p", "no:schemathesis", "-p", "no:hypothesispytest")

Pytest = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment without the settings of whoever runs these tests."""
    foreign = ("PYTEST_", "COV_", "PYTHONDONTWRITEBYTECODE")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return environ | {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")), "COLUMNS": "80"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def run_pytest(folder: Path, surroundings: dict[str, str]) -> Pytest:
    """Run pytest in the folder, to its end."""

    def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", *LEAN, *arguments]
        return subprocess.run(
            command, cwd=folder, env=surroundings | environ, capture_output=True, text=True, timeout=400, check=False
        )

    return run

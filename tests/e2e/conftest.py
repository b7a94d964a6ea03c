"""The command as a user runs it, in a folder of its own, against bundled servers that all tests share."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import CONTINUITY, called, serving

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    with serving() as url:
        yield url


@pytest.fixture(scope="session")
def defective() -> Iterator[str]:
    with serving("--defect", "derive-sha1") as url:
        yield url


@pytest.fixture(scope="session")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment without the settings of whoever runs these tests."""
    foreign = ("PYTEST_", "COV_", "GITHUB_", "PYTHONDONTWRITEBYTECODE")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return environ | {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")), "COLUMNS": "80"}


@pytest.fixture
def continuity(tmp_path: Path, surroundings: dict[str, str]) -> Command:
    """Run the command in the test's folder, to its end."""

    def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [CONTINUITY, *arguments],
            cwd=tmp_path,
            env=surroundings | environ,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )

    return run


@pytest.fixture
def at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The same without a process, which saves its imports: for what does not depend on being a process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    return called


@pytest.fixture
def results(tmp_path: Path) -> Callable[[], dict[str, Any]]:
    return lambda: json.loads((tmp_path / "report" / "results.json").read_text(encoding="utf-8"))

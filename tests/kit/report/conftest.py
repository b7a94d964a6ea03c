"""Real runs, made once: a server that keeps the contract, one that does not, and one that attacks whoever reads the report."""

import copy
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import started
from recorded import PART, checked, continuity, load, save

Make = Callable[[Path], None]
Once = Callable[[str, Make], Path]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Fill a folder that all workers of pytest-xdist share; whoever comes first does so, and the others wait."""
    base = tmp_path_factory.getbasetemp()
    runs = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "runs"
    runs.mkdir(exist_ok=True)

    def made(name: str, make: Make) -> Path:
        folder, mark = runs / name, runs / f"{name}.made"
        with (runs / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not mark.exists():
                folder.mkdir(exist_ok=True)
                make(folder)
                mark.touch()
        return folder

    return made


@pytest.fixture(scope="session")
def good(once: Once) -> Path:
    return once("good", lambda folder: checked(folder, "-k", PART))


@pytest.fixture(scope="session")
def failing(once: Once) -> Path:
    defect = "--defect history-doubles"
    return once("failing", lambda folder: checked(folder, "-k", PART, CONTINUITY_REFERENCE=defect))


@pytest.fixture(scope="session")
def forking(once: Once) -> Path:
    """SLUG-03 fails after its eviction."""
    defect = "--defect slug-forks-on-eviction"
    return once("forking", lambda folder: checked(folder, "-k", "SLUG-03", CONTINUITY_REFERENCE=defect))


@pytest.fixture(scope="session")
def losing(once: Once) -> Path:
    """COMPRESS-09 fails after its compression."""
    defect = "--defect rotating-turn-lost"
    return once("losing", lambda folder: checked(folder, "-k", "COMPRESS-09", CONTINUITY_REFERENCE=defect))


@pytest.fixture(scope="session")
def nasty(once: Once) -> Path:
    return once("nasty", _check_the_nasty_one)


def _check_the_nasty_one(folder: Path) -> None:
    command = [sys.executable, str(Path(__file__).parents[2] / "servers" / "nasty_server.py")]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().removeprefix("listening on ").strip()
        try:
            checked(folder, url, "-k", PART)
        finally:
            server.terminate()


@pytest.fixture(scope="session")
def large(once: Once, failing: Path) -> Path:
    return once("large", lambda folder: _make_the_large_one(folder, load(failing)))


def _make_the_large_one(folder: Path, data: dict[str, Any]) -> None:
    """130 requirements that all fail, each with much evidence, and bodies as long as they are kept, of signs that grow when escaped."""
    failed = next(each for each in data["requirements"] if each["id"] == "HISTORY-02")
    evidence = [each | {"exchanges": each["exchanges"] * 4} for each in failed["evidence"][:7]]
    for exchange in (exchange for each in evidence for exchange in each["exchanges"] if exchange["answer"]):
        exchange["answer"]["body"] = '<"&' * 1300
    areas = ["".join(chr(65 + digit) for digit in divmod(number, 26)) for number in range(13)]
    rows = []
    for number in range(130):
        row = copy.deepcopy(failed) | {"evidence": evidence, "area": areas[number // 10]}
        rows.append(row | {"id": f"{areas[number // 10]}-{number % 10:02}"})
    path = save(folder, data | {"requirements": rows})
    done = continuity("report", str(path), cwd=folder)
    assert done.returncode == 0, done.stderr

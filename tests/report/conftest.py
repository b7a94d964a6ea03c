"""Real runs, made once: a server that keeps the contract, one that does not, and one that attacks whoever reads the report."""

import copy
import subprocess
import sys
from pathlib import Path

import pytest
from recorded import PART, checked, continuity, load, save


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checked(tmp_path_factory.mktemp("good"), "-k", PART)


@pytest.fixture(scope="session")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checked(tmp_path_factory.mktemp("failing"), "-k", PART, CONTINUITY_REFERENCE="--defect history-doubles")


@pytest.fixture(scope="session")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    command = [sys.executable, str(Path(__file__).with_name("nasty_server.py"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().removeprefix("listening on ").strip()
        try:
            return checked(tmp_path_factory.mktemp("nasty"), url, "-k", PART)
        finally:
            server.terminate()


@pytest.fixture(scope="session")
def large(failing: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """130 requirements that all fail, each with much evidence, and bodies as long as they are kept, of signs that grow when escaped."""
    data = load(failing)
    failed = next(each for each in data["requirements"] if each["id"] == "HISTORY-02")
    evidence = [each | {"exchanges": each["exchanges"] * 4} for each in failed["evidence"]]
    for exchange in (exchange for each in evidence for exchange in each["exchanges"] if exchange["answer"]):
        exchange["answer"]["body"] = '<"&' * 1300
    areas = ["".join(chr(65 + digit) for digit in divmod(number, 26)) for number in range(13)]
    rows = []
    for number in range(130):
        row = copy.deepcopy(failed) | {"evidence": evidence, "area": areas[number // 10]}
        rows.append(row | {"id": f"{areas[number // 10]}-{number % 10:02}"})
    folder = tmp_path_factory.mktemp("large")
    path = save(folder, data | {"requirements": rows})
    done = continuity("report", str(path), cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder

"""`continuity check` and `continuity run` against the bundled server."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CONTINUITY = str(Path(sys.executable).with_name("continuity"))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    command = [CONTINUITY, "serve", "--port", "0", "--db", ":memory:"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().removeprefix("listening on ").strip()
        finally:
            server.terminate()


def continuity(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([CONTINUITY, *arguments], cwd=cwd, capture_output=True, text=True, timeout=400, check=False)


def test_the_bundled_server_is_conformant(tmp_path: Path):
    done = continuity("check", "--examples", "1", "--report", "report", cwd=tmp_path)
    results = json.loads((tmp_path / "report" / "results.json").read_text())

    assert done.returncode == 0, done.stdout + done.stderr
    assert "verdict: conformant" in done.stdout
    assert results["verdict"] == "conformant"
    assert results["target"]["observed"] == "probe"


def test_nothing_is_left_in_the_folder_unless_asked_for(url: str, tmp_path: Path):
    continuity("check", url, "-k", "ECHO-02", cwd=tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_a_part_is_at_best_incomplete(url: str, tmp_path: Path):
    done = continuity("check", url, "-k", "ECHO-02", cwd=tmp_path)

    assert done.returncode == 5
    assert "verdict: incomplete" in done.stdout


def test_settings_of_the_folder_have_no_say(url: str, tmp_path: Path):
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --cov=x tests -k nothing\n")
    (tmp_path / "conftest.py").write_text("raise RuntimeError('not for the suite')\n")
    done = continuity("check", url, "-k", "ECHO-02", "-v", cwd=tmp_path)

    assert "echo.yaml::ECHO-02 PASSED" in done.stdout


def test_run_prints_what_was_said(url: str, tmp_path: Path):
    done = continuity("run", "ECHO-02", "--target", url, cwd=tmp_path)

    assert done.returncode == 0
    assert done.stdout.startswith("ECHO-02 (MUST): pass")
    assert f"→ POST {url}/v1/chat/completions" in done.stdout
    assert "← 200" in done.stdout
    assert "X-Hermes-Session-Id: " in done.stdout


def test_run_of_what_only_a_reviewer_can_answer_is_no_pass(url: str, tmp_path: Path):
    done = continuity("run", "HISTORY-12", "--target", url, cwd=tmp_path)

    assert done.returncode == 5
    assert done.stdout.startswith("HISTORY-12 (SHOULD): not tested")

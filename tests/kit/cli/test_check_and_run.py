"""`continuity check` and `continuity run` against the bundled server. That all of it is conformant is tested with the wheel, in tests/e2e/test_wheel.py."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import CONTINUITY, serving


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as url:
        yield url


def continuity(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([CONTINUITY, *arguments], cwd=cwd, capture_output=True, text=True, timeout=400, check=False)


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
    done = continuity("run", "ECHO-02", "-v", "--target", url, cwd=tmp_path)

    assert done.returncode == 0
    assert done.stdout.startswith("ECHO-02 (MUST): pass")
    assert f"→ POST {url}/v1/chat/completions" in done.stdout
    assert "← 200" in done.stdout
    assert "X-Hermes-Session-Id: " in done.stdout


def test_run_of_what_only_a_reviewer_can_answer_is_no_pass(url: str, tmp_path: Path):
    done = continuity("run", "SLUG-16", "--target", url, cwd=tmp_path)

    assert done.returncode == 5
    assert done.stdout.startswith("SLUG-16 (SHOULD): not tested")

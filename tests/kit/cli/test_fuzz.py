"""`continuity fuzz`, and `continuity run FILE`: a search that can be gone on from, and what it found, played again."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CONTINUITY = str(Path(sys.executable).with_name("continuity"))
DEFECT = {"CONTINUITY_REFERENCE": "--defect evicted-slug-misses-rotation"}


def continuity(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [CONTINUITY, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus of one round on a server with a defect."""
    folder = tmp_path_factory.mktemp("corpus")
    done = continuity("fuzz", "reference", "--minutes", "0", "--seed", "3", "--corpus", str(folder), **DEFECT)
    (folder / "said.txt").write_text(done.stdout, encoding="utf-8")
    assert done.returncode == 1, done.stderr
    return folder


def test_progress_and_findings_are_told_and_kept(corpus: Path):
    said = (corpus / "said.txt").read_text(encoding="utf-8")
    found = sorted(corpus.glob("found-*.yaml"))

    assert "seed 3  1 rounds" in said
    assert all(f"continuity run {file} --target reference" in said for file in found)
    assert json.loads((corpus / "progress.json").read_text(encoding="utf-8"))["seed"] == 4


def test_a_found_sequence_is_lint_clean_and_runs_again(corpus: Path):
    found = str(min(corpus.glob("found-*.yaml")))

    assert continuity("spec", "lint", found).returncode == 0
    assert continuity("run", found, **DEFECT).returncode == 1
    assert continuity("run", found).returncode == 0


def test_a_later_search_goes_on_and_plays_what_was_found_before(corpus: Path):
    done = continuity("fuzz", "--minutes", "0", "--corpus", str(corpus))

    assert "of them still fail" in done.stdout
    assert "0 of them still fail" in done.stdout
    assert "seed 4  2 rounds" in done.stdout
    assert done.returncode == 0


def test_a_damaged_corpus_is_one_line(tmp_path: Path):
    (tmp_path / "progress.json").write_text("[]", encoding="utf-8")
    done = continuity("fuzz", "--corpus", str(tmp_path))

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1

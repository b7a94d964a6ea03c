"""`continuity checklist` and `continuity compare`."""

import re
from pathlib import Path

import pytest
from recorded import continuity, load, save

from continuity_conformance.results.describe import question
from continuity_spec import load_spec


def test_the_checklist_of_the_spec_has_every_requirement_and_no_tick(tmp_path: Path):
    done = continuity("checklist", cwd=tmp_path)
    boxes = re.findall(r"^- \[(.)\] \*\*([A-Z]+-\d\d)\*\*", done.stdout, re.MULTILINE)

    assert done.returncode == 0
    assert sorted(identity for _, identity in boxes) == sorted(each.id for each in load_spec().requirements)
    assert {box for box, _ in boxes} == {" "}


def test_each_row_tells_question_check_work_and_pitfalls(tmp_path: Path):
    lines = continuity("checklist", cwd=tmp_path).stdout.splitlines()
    start = next(number for number, line in enumerate(lines) if "**SLUG-03**" in line)
    asked, checked, work, pitfalls = lines[start : start + 4]

    assert asked.endswith(
        "Does it hold that when the response that a slug last named is evicted, the slug MUST keep its session?"
    )
    assert checked.startswith("  - *checked*: By 6 scenarios: plain turns; streamed turns; ")
    assert work.startswith("  - *build*: POST /v1/responses; the continuity header on the answer; ")
    assert work.endswith("state that survives the eviction of a response")
    assert pitfalls.startswith("  - *pitfalls*: Otherwise every eviction splits the conversation")
    assert "evict" in pitfalls.partition("several times.")[2]


def test_what_must_not_be_so_is_asked_as_that():
    asked = question(load_spec().requirement("DERIVE-15"))

    assert asked == "Does it hold that requests that name no session MUST NOT all be placed in one default session?"


def test_what_a_person_answers_is_a_question_and_never_ticked(good: Path):
    lines = (good / "checklist.md").read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if "**SLUG-16**" in line)

    assert lines[start].startswith("- [ ] **SLUG-16** Does the log have one line at INFO")
    assert lines[start + 1] == "  - *checked*: By review: a person answers, no run can."


def test_the_checklist_of_a_run_tells_what_failed(failing: Path):
    done = continuity("checklist", "--results", "results.json", cwd=failing)

    assert done.stdout == (failing / "checklist.md").read_text()
    assert "  - *result*: **fail** `sees: expected red, blue, actual red, red, blue`" in done.stdout


def test_the_checklist_stands_by_class_and_level(tmp_path: Path):
    heads = re.findall(r"^#{2,3} (.*)$", continuity("checklist", cwd=tmp_path).stdout, re.MULTILINE)

    assert heads[:3] == ["Core", "Core: MUST", "Core: MUST NOT"]


def test_the_checklist_as_a_page(failing: Path):
    done = continuity("checklist", "--results", "results.json", "--format", "html", cwd=failing)

    assert done.stdout.startswith("<!DOCTYPE html>")
    assert done.stdout.count("☑") == load(failing)["counts"]["pass"]


def test_a_regression_ends_with_1(good: Path, failing: Path, tmp_path: Path):
    done = continuity("compare", str(good / "results.json"), str(failing / "results.json"), cwd=tmp_path)

    assert done.returncode == 1
    assert "  broke      HISTORY-02   pass → fail" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_what_got_better_ends_with_0(good: Path, failing: Path, tmp_path: Path):
    done = continuity("compare", str(failing / "results.json"), str(good / "results.json"), cwd=tmp_path)

    assert done.returncode == 0
    assert "  better     HISTORY-02   fail → pass" in done.stdout


def test_runs_that_are_equal_differ_in_nothing(good: Path):
    done = continuity("compare", "results.json", "results.json", cwd=good)

    assert done.returncode == 0
    assert "nothing changed" in done.stdout


@pytest.mark.parametrize("verdict", ["not_tested", "not_applicable"])
def test_a_pass_that_is_lost_is_a_regression(good: Path, tmp_path: Path, verdict: str):
    data = load(good)
    lost = next(each for each in data["requirements"] if each["id"] == "HISTORY-02")
    lost |= {"verdict": verdict, "reason": "for a reason"}
    done = continuity("compare", str(good / "results.json"), str(save(tmp_path, data)), cwd=tmp_path)

    assert done.returncode == 1
    assert re.search(r"lost +HISTORY-02 +pass → not", done.stdout)


def test_a_requirement_that_is_gone_is_a_regression_and_a_new_one_is_none(good: Path, tmp_path: Path):
    data = load(good)
    data["requirements"] = [each for each in data["requirements"] if each["id"] != "HISTORY-02"]
    less = save(tmp_path, data)

    fewer = continuity("compare", str(good / "results.json"), str(less), cwd=tmp_path)
    more = continuity("compare", str(less), str(good / "results.json"), cwd=tmp_path)

    assert (fewer.returncode, more.returncode) == (1, 0)
    assert "missing → pass" in more.stdout


def test_a_failure_that_was_not_tested_before_is_told_and_no_regression(failing: Path, tmp_path: Path):
    data = load(failing)
    before = next(each for each in data["requirements"] if each["id"] == "HISTORY-02")
    before |= {"verdict": "not_tested", "reason": "for a reason"}
    done = continuity("compare", str(save(tmp_path, data)), str(failing / "results.json"), cwd=tmp_path)

    assert done.returncode == 0
    assert "  fails now  HISTORY-02   not tested → fail" in done.stdout


def test_several_runs_stand_in_one_matrix(good: Path, failing: Path, tmp_path: Path):
    paths = [str(folder / "results.json") for folder in (good, failing, good)]
    done = continuity("compare", *paths, "--format", "md", cwd=tmp_path)
    row = next(line for line in reversed(done.stdout.splitlines()) if line.startswith("| HISTORY-02 "))

    assert done.returncode == 1
    assert row.endswith("| MUST | ✓ pass | ✗ fail | ✓ pass |")


def test_a_comparison_as_a_page(good: Path, failing: Path, tmp_path: Path):
    paths = [str(folder / "results.json") for folder in (good, failing)]
    done = continuity("compare", *paths, "--format", "html", cwd=tmp_path)

    assert '<td class="v mark fail">✗ fail</td>' in done.stdout


def test_one_run_has_nothing_to_be_compared_with(good: Path):
    done = continuity("compare", "results.json", cwd=good)

    assert done.returncode == 2
    assert "two or more" in done.stderr

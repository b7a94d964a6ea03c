"""The causes of a run: in results.json, on the terminal, in every report, and by `continuity diagnose`."""

import json

import pytest
from recorded import continuity, load, save

TITLE = "Every stored turn reaches the model twice"


def test_a_defect_is_the_first_cause(failing):
    first, *_ = load(failing)["causes"]

    assert (first["defect"], first["confidence"]) == ("history-doubles", "high")
    assert "HISTORY-02" in first["explains"]


@pytest.mark.parametrize(
    ("file", "failures"), [("terminal.txt", "\nfailed:"), ("report.md", "### Failed"), ("report.html", "<h2>Failed")]
)
def test_every_report_shows_the_cause_before_the_failures(failing, file, failures):
    text = (failing / file).read_text(encoding="utf-8")

    assert text.index(TITLE) < text.index(failures)


def test_a_run_in_which_nothing_fails_has_no_causes(good):
    assert load(good)["causes"] == []
    assert "cause" not in (good / "terminal.txt").read_text(encoding="utf-8")


def test_an_earlier_run_is_diagnosed(failing, tmp_path):
    done = continuity("diagnose", str(failing / "results.json"), cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"1 cause, {len(load(failing)['causes'][0]['explains'])} of")
    assert TITLE in done.stdout


def test_results_of_a_kit_that_found_no_causes_are_diagnosed_when_they_are_read(failing, tmp_path):
    data = load(failing)
    del data["causes"]

    done = continuity("report", str(save(tmp_path, data)), cwd=tmp_path)

    assert done.returncode == 0
    assert TITLE in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_the_causes_as_json(failing, tmp_path):
    done = continuity("diagnose", str(failing / "results.json"), "--format", "json", cwd=tmp_path)

    assert json.loads(done.stdout) == load(failing)["causes"]


def test_an_issue_is_ready_to_paste(failing, tmp_path):
    continuity("diagnose", str(failing / "results.json"), "--issues", "issues", cwd=tmp_path)

    text = (tmp_path / "issues" / "01-history-doubles.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {TITLE}")
    assert "continuity run HISTORY-02 --target $TARGET" in text
    assert "127.0.0.1" not in text
    assert str(failing) not in text


def test_a_run_that_was_stopped_gets_no_issues(failing, tmp_path):
    stopped = save(tmp_path, load(failing) | {"finished": False})

    done = continuity("diagnose", str(stopped), "--issues", "issues", cwd=tmp_path)

    assert "No issue is written: the run did not finish" in done.stderr
    assert not (tmp_path / "issues").exists()


def test_a_run_on_a_server_that_refused_the_key_gets_no_issues(failing, tmp_path):
    data = load(failing)
    refused = next(each for each in data["requirements"] if each["verdict"] == "pass")
    refused |= {"verdict": "error", "reason": "the key was refused"}

    done = continuity("diagnose", str(save(tmp_path, data)), "--issues", "issues", cwd=tmp_path)

    assert "No issue is written: something ended in an error" in done.stderr

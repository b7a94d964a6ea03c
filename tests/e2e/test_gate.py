"""The gate on real runs: known failures pass it, stale, expired and unknown ones do not, and a part is never conformant."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest
from processes import FAILS
from test_terminal import decided

from continuity_conformance.core.run_options import RunOptions
from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.results.baseline import load_baseline
from continuity_conformance.results.ledger import Ledger
from continuity_conformance.suite.release import newest
from continuity_conformance.terminal import summary
from continuity_spec.load.schema import schema

TODAY = datetime.now(UTC).date()
TOMORROW = TODAY + timedelta(days=1)
LAST_MONTH = TODAY - timedelta(days=30)
PASSES = "DERIVE-01"


def known(folder: Path, id_: str = FAILS, *, until=TOMORROW, more: str = "") -> str:
    entry = f"- id: {id_}\n  reason: The hash is being replaced.\n  until: {until}\n{more}"
    (folder / "known.yaml").write_text(entry)
    return "known.yaml"


def test_a_failure_closes_the_gate(at_once, defective):
    done = at_once("check", defective, "--area", "DERIVE", "--accept-untested")

    assert done.returncode == 1
    assert "1 failure not accepted by a baseline" in done.stdout


def test_a_known_failure_does_not_fail_and_is_still_told(at_once, defective, tmp_path, results):
    issue = "  issue: https://example.org/issues/7\n"
    given = ("--baseline", known(tmp_path, more=issue), "--accept-untested", "--report", "report")
    done = at_once("check", defective, "--area", "DERIVE", *given)
    written = results()
    row = next(each for each in written["requirements"] if each["id"] == FAILS)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "verdict: NOT conformant (1 failed, 1 of them known; " in done.stdout
    assert "gate:    passed (exit code 0)" in done.stdout
    assert f"  {FAILS}   until {TOMORROW}  The hash is being replaced." in done.stdout
    jsonschema.validate(written, schema("results"))
    assert written["verdict"] == "not_conformant"
    assert written["gate"]["passed"] is True
    assert row["verdict"] == "fail"
    assert row["known"] == {
        "reason": "The hash is being replaced.",
        "until": TOMORROW.isoformat(),
        "issue": "https://example.org/issues/7",
        "accepts": "failure",
        "expired": False,
    }


def test_pytest_has_the_same_gate(defective, tmp_path, surroundings):
    command = [sys.executable, "-m", "pytest", "--target", defective, "--continuity-baseline", known(tmp_path), "-v"]
    command += ["--continuity-accept-untested", "--continuity-area", "derive", "--continuity-release", "1.0"]
    done = subprocess.run(
        command, cwd=tmp_path, env=surroundings, capture_output=True, text=True, timeout=400, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"derive.yaml::{FAILS} KNOWN" in done.stdout
    assert "gate:    passed (exit code 0)" in done.stdout


def test_the_last_day_of_an_entry_still_counts(at_once, defective, tmp_path):
    done = at_once(
        "check",
        defective,
        "-k",
        FAILS + " or " + PASSES,
        "--baseline",
        known(tmp_path, until=TODAY),
        "--accept-untested",
    )

    assert done.returncode == 0, done.stdout


def test_an_entry_that_passes_again_is_stale_and_fails(at_once, url, tmp_path):
    done = at_once("check", url, "--area", "DERIVE", "--baseline", known(tmp_path), "--accept-untested")

    assert done.returncode == 1
    assert f"known.yaml:1: stale: {FAILS} passes again; remove the entry" in done.stdout
    assert "gate:    FAILED (exit code 1)" in done.stdout


def test_an_expired_entry_fails(at_once, defective, tmp_path, results):
    baseline = known(tmp_path, until=LAST_MONTH)
    given = ("--baseline", baseline, "--accept-untested", "--report", "report")
    done = at_once("check", defective, "--area", "DERIVE", *given)

    assert done.returncode == 1
    assert f"known.yaml:1: expired: {FAILS} was accepted until {LAST_MONTH}" in done.stdout
    assert next(each for each in results()["requirements"] if each["id"] == FAILS)["known"]["expired"] is True


def test_an_entry_about_what_is_not_selected_says_nothing(at_once, url, tmp_path):
    done = at_once("check", url, "-k", PASSES, "--baseline", known(tmp_path, until=LAST_MONTH), "--accept-untested")

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [
        ("- {id: DERVE-04, reason: r, until: 2027-01-31}", "known.yaml:1:8", 'Did you mean "DERIVE-04"?'),
        ("- {id: derive-04, reason: r, until: 2027-01-31}", "known.yaml:1:8", 'Did you mean "DERIVE-04"?'),
        ("- {id: DERIVE-04, reason: r, until: 2027-02-30}", "known.yaml:1:37", "there is no day 2027-02-30"),
        ("- {id: DERIVE-04, reason: r, until: soon}", "known.yaml:1:37", "2027-01-31"),
        ("- {id: DERIVE-04, until: 2027-01-31}", "known.yaml:1:3", 'lacks "reason"'),
        ("- {id: DERIVE-04, reason: ' ', until: 2027-01-31}", "known.yaml:1:27", "not a valid value"),
        ("- {id: DERIVE-04, reason: r, untill: 2027-01-31}", "known.yaml:1:30", 'Did you mean "until"?'),
        (
            "- {id: DERIVE-04, reason: r, until: 2027-01-31, issue: 'javascript:x'}",
            "known.yaml:1:56",
            "not a valid value",
        ),
        (
            "- {id: DERIVE-04, reason: r, until: 2027-01-31}\n- {id: DERIVE-04, reason: r, until: 2027-01-31}",
            "known.yaml:2:3",
            "already in line 1",
        ),
        ("id: DERIVE-04", "known.yaml:1:1", "a list"),
        ("", "known.yaml:1:1", "a list"),
        ("- {id", "known.yaml:2:1", "not YAML"),
    ],
)
def test_a_wrong_baseline_is_told_with_its_line_before_anything_runs(at_once, tmp_path, text, where, said):
    (tmp_path / "known.yaml").write_text(text)
    done = at_once("check", "http://127.0.0.1:9", "--baseline", "known.yaml")

    assert done.returncode == 2
    assert done.stderr.startswith(f"continuity: {where}")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_first_baseline_opens_the_gate_that_was_closed(at_once, defective, tmp_path):
    at_once("check", defective, "--area", "DERIVE", "--report", "report")
    wrote = at_once("baseline", "report/results.json", "-o", "known.yaml")
    again = at_once("check", defective, "--area", "DERIVE", "--baseline", "known.yaml", "--accept-untested")

    assert wrote.returncode == 0, wrote.stderr
    assert f"- id: {FAILS}\n" in (tmp_path / "known.yaml").read_text()
    assert again.returncode == 0, again.stdout


def test_a_later_baseline_keeps_what_people_wrote(at_once, defective, tmp_path):
    at_once("check", defective, "--area", "DERIVE", "--report", "report", "--baseline", known(tmp_path))
    printed = at_once("baseline", "report/results.json").stdout

    assert f'- id: {FAILS}\n  reason: "The hash is being replaced."\n  until: {TOMORROW}\n' in printed


def test_a_baseline_is_never_written_over(at_once, url, tmp_path):
    at_once("check", url, "-k", PASSES, "--report", "report")
    (tmp_path / "known.yaml").write_text("mine")
    done = at_once("baseline", "report/results.json", "-o", "known.yaml")

    assert done.returncode == 2
    assert (tmp_path / "known.yaml").read_text() == "mine"
    assert at_once("baseline", "report/results.json").stdout.endswith("\n[]\n")


def test_a_part_is_never_conformant_even_if_the_gate_accepts_it(at_once, url, results):
    given = ("--area", "derive", "--report", "report")
    strict = at_once("check", url, *given)
    accepting = at_once("check", url, *given, "--accept-untested")

    assert strict.returncode == 5
    assert accepting.returncode == 0
    assert "verdict: incomplete (1 that count not tested; 16 of " in accepting.stdout
    assert "accepted: only 16 of " in accepting.stdout
    assert results()["verdict"] == "incomplete"
    assert results()["gate"]["areas"] == ["DERIVE"]
    assert results()["gate"]["selected"] == 16


def test_what_could_not_be_tested_is_told_although_it_is_accepted(at_once, url):
    """A running server cannot be restarted by the kit."""
    done = at_once("check", url, "--accept-untested", "-k", "DURABLE or ECHO-02")

    assert done.returncode == 0, done.stdout
    assert "verdict: incomplete (4 that count not tested; 6 of " in done.stdout


@pytest.mark.parametrize(("accepting", "code"), [(True, 0), (False, 5)])
def test_nor_is_a_whole_run_conformant_with_something_untested(accepting, code):
    ledger = Ledger(RunOptions("http://127.0.0.1:1", accept_untested=accepting), newest())
    for requirement in newest().requirements:
        ledger.add(decided(requirement, Verdict.NOT_TESTED if requirement.id == PASSES else Verdict.PASS))
    outcome = ledger.close()

    assert outcome.complete
    assert outcome.gate.exit_code == code
    assert summary.lines(outcome, None)[0].startswith("verdict: incomplete (1 that count not tested)")


GAP = "  accepts: untested\n"


def gated(folder: Path, verdict: Verdict, **entry):
    """The gate of a whole run that passes, but for one requirement, which the baseline has an entry about."""
    known(folder, PASSES, **entry)
    ledger = Ledger(RunOptions("http://127.0.0.1:1"), newest())
    ledger.baseline = load_baseline(folder / "known.yaml", newest().requirements)
    for requirement in newest().requirements:
        ledger.add(decided(requirement, verdict if requirement.id == PASSES else Verdict.PASS))
    return ledger.close()


def test_a_single_gap_can_be_accepted_and_the_verdict_stays_incomplete(tmp_path):
    outcome = gated(tmp_path, Verdict.NOT_TESTED, more=GAP)
    told = "\n".join(summary.lines(outcome, None))

    assert outcome.gate.exit_code == 0
    assert told.startswith("verdict: incomplete (1 that count not tested, 1 of them known)")
    assert f"known gaps:\n  {PASSES}   until {TOMORROW}  The hash is being replaced." in told


@pytest.mark.parametrize(
    ("verdict", "entry", "code"),
    [
        (Verdict.NOT_TESTED, {"more": GAP, "until": LAST_MONTH}, 1),
        (Verdict.NOT_TESTED, {}, 5),
        (Verdict.FAIL, {"more": GAP}, 1),
        (Verdict.FAIL, {}, 0),
        (Verdict.PASS, {"more": GAP}, 1),
        (Verdict.NOT_APPLICABLE, {"more": GAP}, 0),
    ],
)
def test_an_entry_accepts_what_it_says_and_nothing_else(tmp_path, verdict, entry, code):
    assert gated(tmp_path, verdict, **entry).gate.exit_code == code


def test_a_first_baseline_can_have_the_gaps(at_once, url):
    at_once("check", url, "-k", "DURABLE-01 or ECHO-02", "--report", "report")
    written = at_once("baseline", "report/results.json", "--untested").stdout

    assert "- id: DURABLE-01\n" in written
    assert "  accepts: untested\n" in written


def test_accepting_what_is_untested_does_not_accept_a_run_without_a_pass(at_once, url):
    assert at_once("check", url, "-k", "SLUG-16", "--accept-untested").returncode == 5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--area", "DERVE"), 'Did you mean "DERIVE"?'),
        (("--area", "DERIVE,SLUGS"), 'Did you mean "SLUG"?'),
        (("--release", "1.1"), 'Did you mean "1.0"?'),
        (("--baseline", "missing.yaml"), "missing.yaml"),
    ],
)
def test_a_wrong_word_is_answered_with_the_nearest(at_once, arguments, said):
    done = at_once("check", "http://127.0.0.1:9", *arguments)

    assert done.returncode == 2
    assert said in done.stderr


def test_a_wrong_baseline_leaves_no_older_report_behind(at_once, tmp_path, results):
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "results.json").write_text('{"verdict": "conformant"}')
    (tmp_path / "known.yaml").write_text("- {id: X-01, reason: r, until: 2027-01-31}")
    at_once("check", "http://127.0.0.1:9", "--baseline", "known.yaml", "--report", "report")

    assert results()["verdict"] == "error"
    assert results()["gate"]["exit_code"] == 2

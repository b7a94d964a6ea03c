"""results.json is read back: old files, new files, and files that no run wrote."""

import json
from pathlib import Path
from typing import Any

import pytest

from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.results.read import UnreadableResultsError, read
from continuity_conformance.results.shortened import completed
from continuity_spec import load_spec

PUBLISHED = sorted(Path(__file__).parents[3].glob("docs/results/*/results.json"))


def results_of_an_old_kit() -> dict[str, Any]:
    """Only what the schema demands: no description of the spec, no `again`, no interventions."""
    counts = {"pass": 0, "fail": 1, "not_applicable": 0, "not_tested": 0, "error": 0}
    evidence = {
        "scenario": "",
        "example": "",
        "outcome": "fail",
        "step": "1",
        "expectation": "status",
        "expected": "200",
        "actual": "500",
        "failure": "the whole text",
        "exchanges": [],
    }
    requirement = {
        "id": "ECHO-01",
        "area": "echo",
        "level": "MUST NOT",
        "text": "It answers.",
        "verdict": "fail",
        "seconds": 1,
        "reason": "status",
        "manual": False,
        "known": None,
        "evidence": [evidence],
    }
    return {
        "schema": "urn:session-continuity:schema:results:1.0",
        "target": {"name": "t", "url": "http://t", "header": "X", "options": {}, "offers": [], "observed": "probe"},
        "release": "1.0",
        "kit": {"name": "session-continuity", "version": "0.0.1"},
        "started": "2026-01-01T00:00:00Z",
        "seconds": 2,
        "verdict": "not_conformant",
        "complete": True,
        "finished": True,
        "gate": {
            "passed": False,
            "exit_code": 1,
            "reasons": ["1 failure"],
            "fail_on": "MUST",
            "accept_untested": False,
            "baseline": None,
            "areas": [],
            "selected": 1,
        },
        "classes": [{"name": "Core", "verdict": "not_conformant", "counts": counts}],
        "counts": counts,
        "requirements": [requirement],
    }


def saved(data: dict[str, Any], folder: Path) -> Path:
    path = folder / "results.json"
    path.write_text(json.dumps(data))
    return path


def test_what_an_old_kit_did_not_record_has_a_default(tmp_path: Path):
    report = read(saved(results_of_an_old_kit(), tmp_path))
    row = report.rows[0]

    assert (report.again.target, report.again.profile, report.again.seed) == ("http://t", None, None)
    assert (row.question, row.why, row.scenarios, row.result.pack) == ("It answers.", "", (), "")
    assert (row.result.failure, row.result.evidence[0].interventions) == ("the whole text", None)
    assert report.classes[0].counts[Verdict.FAIL] == 1
    assert report.failed == [row]


def test_results_without_the_kinds_of_difference_have_one_cause_that_asks_for_another_run(tmp_path: Path):
    report = read(saved(results_of_an_old_kit(), tmp_path))

    assert [(cause.defect, cause.explains) for cause in report.causes] == [(None, ("ECHO-01",))]
    assert "run the suite again" in report.causes[0].title


def test_the_class_of_a_requirement_that_an_old_kit_did_not_write_is_that_of_the_spec(tmp_path: Path):
    report = read(saved(results_of_an_old_kit(), tmp_path))

    assert report.rows[0].result.class_name == load_spec().requirement("ECHO-01").class_name


def test_of_published_results_without_them_the_scenarios_that_do_not_apply_are_told_from_the_spec():
    report = read(next(path for path in PUBLISHED if path.parent.name == "letta-0.32.18"))
    whole = {result.id: result for result in completed(report)}
    silent = {each.scenario for each in whole["SLUG-23"].evidence if each.outcome is Verdict.NOT_APPLICABLE}

    assert {"a slug", "reading the response"} <= silent
    assert "a chain" not in silent


def test_fields_of_a_later_kit_are_ignored(tmp_path: Path):
    data = results_of_an_old_kit()
    data["new"] = data["gate"]["new"] = data["requirements"][0]["new"] = "x"

    assert read(saved(data, tmp_path)).release == "1.0"


def test_text_that_acts_on_a_terminal_is_made_visible(tmp_path: Path):
    data = results_of_an_old_kit()
    data["target"]["name"] = "red \x1b[31m"

    assert read(saved(data, tmp_path)).target.name == "red \\u001b[31m"


def test_a_number_that_only_the_schema_takes_for_an_integer_is_refused(tmp_path: Path):
    data = results_of_an_old_kit()
    data["gate"]["exit_code"] = 1.0

    with pytest.raises(UnreadableResultsError, match=r"Expected `int`, got `float` - at `\$\.gate\.exit_code`"):
        read(saved(data, tmp_path))


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.parent.name)
def test_published_results_can_be_read(path: Path):
    assert read(path).rows

"""The ledger books each requirement of the release once; results.json and the summary are made from it."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest

from continuity_conformance.core.errors import KitError, UnreachableError
from continuity_conformance.core.run_options import RunOptions
from continuity_conformance.core.verdicts import Evidence, Result, RunVerdict, Verdict, undecided
from continuity_conformance.results import write as results
from continuity_conformance.results.classes import class_of, class_verdicts
from continuity_conformance.results.ledger import STOPPED, Ledger
from continuity_conformance.results.tally import NOT_SELECTED
from continuity_conformance.suite.defects import defects
from continuity_conformance.suite.release import newest
from continuity_conformance.terminal import summary
from continuity_spec import Level, Requirement
from continuity_spec.load.schema import schema

RELEASE = newest()
EXCHANGE = {
    "at": 0.0,
    "seconds": 0.01,
    "step": "chat {say: red}",
    "request": {"method": "POST", "url": "/v1/chat/completions", "headers": {}, "body": {"messages": []}},
    "answer": {"status": 200, "headers": {"X-Hermes-Session-Id": "a"}, "body": "{}"},
    "error": None,
    "seen": None,
}


def decided(requirement: Requirement, verdict: Verdict, reason: str = "") -> Result:
    evidence = Evidence("", "", verdict, reason, "step 1", "session", "one", "two", "text", (EXCHANGE,))
    return Result(
        requirement.id, requirement.area, requirement.level, requirement.text, verdict, 0.5, reason, "text", (evidence,)
    )


def ledger(
    verdicts: Mapping[str, Verdict] | None = None, *, fail_on: Level = Level.MUST, classes: tuple[str, ...] = ()
) -> Ledger:
    """All of the release has passed, except for what is given."""
    made = Ledger(RunOptions("http://127.0.0.1:1", fail_on=fail_on, classes=classes), RELEASE)
    for requirement in RELEASE.requirements:
        verdict = (verdicts or {}).get(requirement.id, Verdict.PASS)
        made.add(decided(requirement, verdict, "" if verdict is Verdict.PASS else "for a reason"))
    return made


def first(*, binding: bool) -> str:
    return next(each.id for each in RELEASE.requirements if each.level.binding is binding)


def every_kind() -> dict[str, Verdict]:
    kinds = list(Verdict)
    return {each.id: kinds[number % len(kinds)] for number, each in enumerate(RELEASE.requirements)}


def test_a_release_that_passed_is_conformant_and_complete():
    outcome = ledger().close()

    assert outcome.verdict is RunVerdict.CONFORMANT
    assert outcome.complete


@pytest.mark.parametrize("binding", [True, False])
def test_a_run_of_a_part_is_at_best_incomplete(binding: bool):
    left_out = first(binding=binding)
    made = Ledger(RunOptions("http://127.0.0.1:1"), RELEASE)
    made.select(each.id for each in RELEASE.requirements if each.id != left_out)
    for requirement in RELEASE.requirements:
        if requirement.id != left_out:
            made.add(decided(requirement, Verdict.PASS))
    outcome = made.close()

    assert outcome.verdict is RunVerdict.INCOMPLETE
    assert not outcome.complete
    assert [each.reason for each in outcome.results if each.id == left_out] == [NOT_SELECTED]


def test_a_run_that_was_stopped_keeps_what_was_decided():
    made = Ledger(RunOptions("http://127.0.0.1:1"), RELEASE)
    made.add(decided(RELEASE.requirements[0], Verdict.PASS))
    outcome = made.close()

    assert outcome.results[0].verdict is Verdict.PASS
    assert {each.reason for each in outcome.results[1:]} == {STOPPED}
    assert not outcome.complete


def test_the_first_result_of_a_requirement_counts():
    made = ledger()
    made.add(undecided(RELEASE.requirements[0], Verdict.NOT_TESTED, "later"))

    assert made.close().verdict is RunVerdict.CONFORMANT


def test_a_result_that_the_terminal_cannot_show_is_replaced():
    made = ledger()
    made.replace(undecided(RELEASE.requirements[0], Verdict.ERROR, "later"))

    assert made.close().verdict is RunVerdict.ERROR


def test_results_can_be_read_while_the_run_goes_on():
    made = Ledger(RunOptions("http://127.0.0.1:1"), RELEASE)
    results = [decided(each, Verdict.PASS) for each in (RELEASE.requirements[1], RELEASE.requirements[0])]
    for result in results:
        made.add(result)

    assert made.decided() == results


def test_a_failed_should_warns():
    assert ledger({first(binding=False): Verdict.FAIL}).close().verdict is RunVerdict.CONFORMANT


def test_a_failed_should_fails_where_that_was_asked_for():
    failed = {first(binding=False): Verdict.FAIL}

    assert ledger(failed, fail_on=Level.SHOULD).close().verdict is RunVerdict.NOT_CONFORMANT


def test_a_target_that_nobody_reached_has_no_pass():
    outcome = Ledger(RunOptions("http://127.0.0.1:1"), RELEASE).give_up(UnreachableError("nothing answers."))

    assert outcome.verdict is RunVerdict.UNREACHABLE
    assert {each.verdict for each in outcome.results} == {Verdict.ERROR}


def test_a_password_in_the_url_is_in_no_report():
    outcome = Ledger(RunOptions("http://me:hunter2@127.0.0.1:1/?key=hunter2"), RELEASE).close()

    assert "hunter2" not in json.dumps(results.as_json(outcome))


@pytest.mark.parametrize(
    "outcome",
    [
        ledger().close(),
        ledger(every_kind()).close(),
        Ledger(RunOptions("reference"), RELEASE).close(),
        Ledger(RunOptions("http://127.0.0.1:1"), RELEASE).give_up(UnreachableError("nothing answers.")),
        Ledger(RunOptions("http://127.0.0.1:1"), RELEASE).give_up(KitError("it broke.")),
    ],
    ids=["conformant", "mixed", "empty", "unreachable", "kit error"],
)
def test_results_have_the_form_of_their_schema(outcome):
    jsonschema.validate(results.as_json(outcome), schema("results"))


def test_results_list_the_release_in_its_order():
    written = results.as_json(ledger(every_kind()).close())

    assert [each["id"] for each in written["requirements"]] == [each.id for each in RELEASE.requirements]
    assert sum(written["counts"].values()) == len(RELEASE.requirements)


def test_writing_results_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(subprocess, "Popen", None)
    defects.cache_clear()

    assert results.write(ledger().close(), tmp_path).is_file()


def test_a_report_is_replaced_whole(tmp_path: Path):
    (tmp_path / "results.json").write_text("old")
    path = results.write(ledger().close(), tmp_path)

    assert json.loads(path.read_text())["verdict"] == "conformant"
    assert [each.name for each in tmp_path.iterdir()] == ["results.json"]


def test_a_lone_surrogate_in_an_answer_does_not_cost_the_report(tmp_path: Path):
    made = Ledger(RunOptions("http://127.0.0.1:1"), RELEASE)
    made.add(decided(RELEASE.requirements[0], Verdict.FAIL, "got \ud800"))
    path = results.write(made.close(), tmp_path)

    assert json.loads(path.read_text())["verdict"] == "not_conformant"


def test_classes_stand_for_the_whole_release():
    judged = class_verdicts(ledger().close().results)

    assert "Core" in {each.name for each in judged}
    assert all(each.verdict is RunVerdict.CONFORMANT for each in judged)


def classes(verdicts: Mapping[str, Verdict], *asked: str) -> dict[str, str]:
    """What a run with these verdicts says about each class."""
    return {each.name: each.summary for each in ledger(verdicts, classes=asked).close().classes}


def members(name: str) -> list[Requirement]:
    return [each for each in RELEASE.requirements if class_of(each) == name and each.level.binding and not each.manual]


def test_a_class_of_which_nothing_applies_is_not_claimed():
    nothing = {each.id: Verdict.NOT_APPLICABLE for each in RELEASE.requirements if class_of(each) == "Recovery"}
    written = {each["name"]: each["verdict"] for each in results.as_json(ledger(nothing).close())["classes"]}

    assert written["Recovery"] is None
    assert written["Core"] == "conformant"


@pytest.mark.parametrize("each", [each for each in RELEASE.classes if each.essential], ids=lambda each: each.name)
def test_a_class_is_not_claimed_for_a_server_that_lacks_its_feature(each):
    assert classes({each.essential: Verdict.NOT_APPLICABLE})[each.name] == "not applicable"
    assert classes({})[each.name] == "conformant"


def test_a_failure_in_a_class_is_told_although_the_server_lacks_its_feature():
    verdicts = {"ISOLATE-06": Verdict.NOT_APPLICABLE, "ISOLATE-01": Verdict.FAIL}

    assert classes(verdicts)["Tenants"].endswith("next: ISOLATE-01")


def test_a_class_tells_how_far_it_is_and_what_comes_next():
    failed = {"SLUG-07": Verdict.FAIL}

    assert (
        classes(failed)["Responses"] == f"{len(members('Responses')) - 1} of {len(members('Responses'))}, next: SLUG-07"
    )


def test_a_class_cannot_be_claimed_without_the_classes_that_it_requires():
    without_core = {members("Core")[0].id: Verdict.FAIL}

    assert classes(without_core)["Responses"].endswith("needs Core")
    assert classes({})["Responses"] == "conformant"


def test_offering_nothing_is_not_conformance():
    nothing = {each.id: Verdict.NOT_APPLICABLE for each in RELEASE.requirements if class_of(each) == "Core"}

    assert ledger(nothing).close().verdict is RunVerdict.INCOMPLETE


def test_strictness_is_reported_and_decides_nothing():
    outcome = ledger({each.id: Verdict.FAIL for each in members("Strict")}).close()

    assert outcome.verdict is RunVerdict.CONFORMANT
    assert outcome.gate.passed
    assert {each.id for each in outcome.gate.warned} == {each.id for each in members("Strict")}


def test_a_class_that_the_user_names_decides():
    failed = {members("Strict")[0].id: Verdict.FAIL}

    assert ledger(failed, classes=("Strict",)).close().verdict is RunVerdict.NOT_CONFORMANT


def test_a_verdict_on_some_classes_needs_no_others():
    failed = {each.id: Verdict.FAIL for each in members("Compression")}
    outcome = ledger(failed, classes=("Recovery",)).close()

    assert outcome.verdict is RunVerdict.CONFORMANT
    assert [each.name for each in outcome.classes] == ["Core", "Recovery"]


def test_the_summary_fits_on_80_columns():
    lines = summary.lines(ledger(every_kind()).close(), Path("report/results.json"))

    assert max(len(line) for line in lines) <= 80


def test_the_counts_of_the_summary_add_up_to_the_release():
    lines = summary.lines(ledger(every_kind()).close(), None)
    total = next(line for line in lines if line.startswith("total"))

    assert sum(int(number) for number in total.split()[1:]) == len(RELEASE.requirements)


def test_the_summary_begins_with_the_verdict():
    assert summary.lines(ledger().close(), None)[0].startswith("verdict: conformant")


def test_each_failure_has_one_line():
    failed = first(binding=True)
    lines = summary.lines(ledger({failed: Verdict.FAIL}).close(), None)

    assert f"  {failed:11} MUST      session: expected one, actual two" in lines


def test_what_was_not_tested_is_grouped_by_its_reason():
    some = [each.id for each in RELEASE.requirements[:3]]
    lines = summary.lines(ledger(dict.fromkeys(some, Verdict.NOT_TESTED)).close(), None)

    assert lines[lines.index("  for a reason") + 1].split() == ", ".join(some).split()

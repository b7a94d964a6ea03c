"""What docs/results publishes: whole runs, accounted for, and in agreement with what was measured by hand."""

import json
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import publish
from continuity_conformance.core.cache import user_cache
from continuity_spec import load_spec
from continuity_spec.load.schema import schema
from pages import kept, measured, overview

RESULTS = Path(__file__).parents[2] / "docs" / "results"
FOLDERS = sorted(path.parent for path in RESULTS.glob("*/results.json"))
HERMES = ("0.13.0", "0.16.0", "0.17.0", "0.18.2", "0.19.0", "rotating-0.19.0")
IN_CLASSES = [version for version in HERMES if kept.classes(RESULTS / f"hermes-{version}")]
"""Those that were run since the spec has its classes."""
PAGES = sorted(path for path in RESULTS.rglob("*") if path.suffix in {".md", ".yaml", ".json", ".txt"})
OF_A_MACHINE = re.compile(r"""/tmp/|/root/|/home/|/Users/|\.cache/|/found/|Bearer (?!\$|<|\*|\\?")|\bsk-[\w-]{8}""")
OUR_HOSTS = {"127.0.0.1", "continuity.test", "localhost", "web-page.example"}
NAMED_BY_TARGETS = {"aka.ms", "errors.pydantic.dev"}
"""What the libraries of a target write about themselves."""
MEASURED = yaml.safe_load((RESULTS / "measured.yaml").read_text(encoding="utf-8"))


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture
def results(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("version", HERMES)
def test_hermes_is_published_in_every_version_that_was_measured(version: str):
    assert RESULTS / f"hermes-{version}" in FOLDERS


def test_a_run_went_to_its_end(results: dict[str, Any]):
    assert results["complete"]
    assert results["finished"]


def test_every_requirement_of_a_run_is_one_of_the_release(results: dict[str, Any]):
    """Requirements that were added after a run are missing in it until the target is run again."""
    found = [each["id"] for each in results["requirements"]]

    assert len(found) == len(set(found)) >= 149
    assert set(found) <= set(load_spec().releases[results["release"]].ids)


def test_nothing_is_in_error(results: dict[str, Any]):
    assert [each["id"] for each in results["requirements"] if each["verdict"] == "error"] == []


def test_the_counts_add_up(results: dict[str, Any]):
    found = Counter(each["verdict"] for each in results["requirements"])

    assert {verdict: count for verdict, count in results["counts"].items() if count} == found


def test_what_is_kept_validates(results: dict[str, Any]):
    jsonschema.Draft202012Validator(schema("results")).validate(results)


def test_every_failure_has_its_transcript(results: dict[str, Any]):
    failed = [each for each in results["requirements"] if each["verdict"] == "fail"]

    assert [each["id"] for each in failed if not all(evidence["failure"] for evidence in kept.failed(each))] == []
    assert [each["id"] for each in failed if not kept.failed(each)] == []


def test_what_was_not_decided_has_a_reason(results: dict[str, Any]):
    undecided = [each for each in results["requirements"] if each["verdict"] in {"not_tested", "not_applicable"}]

    assert undecided
    assert [each["id"] for each in undecided if not each["reason"].strip()] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(RESULTS)))
def test_nothing_of_a_machine_is_told(path: Path):
    """Neither its files, nor a key, nor a host."""
    text = path.read_text(encoding="utf-8")
    hosts = {host.partition(":")[0] for host in re.findall(r"https?://([\w.:-]++)(?!…)", text)}  # a text may be cut

    assert OF_A_MACHINE.findall(text) == []
    assert hosts - OUR_HOSTS - NAMED_BY_TARGETS == set()


def test_what_is_kept_tells_nothing_of_the_machine():
    told = f"in {tempfile.gettempdir()}/continuity-x1y2_z3w/work/a.txt; saved as {user_cache()}/found/found-0a1b.yaml"

    assert kept.cleaned(told) == "in SCRATCH/work/a.txt; the run saved it as a scenario"


def test_tracebacks_of_a_target_tell_nothing_of_the_machine_either():
    told = f'File "{sys.base_prefix}/lib/json/decoder.py"; File "{Path(publish.__file__).parents[2]}/plugins/x.py"'

    assert kept.cleaned(told) == 'File "PYTHON/lib/json/decoder.py"; File "plugins/x.py"'


def test_the_first_failure_of_each_example_is_kept():
    shown = [("a", "one", "1"), ("a", "two", "1"), ("a", "one", "2"), ("b", "", "1")]
    evidence = [
        {"scenario": scenario, "example": example, "step": step, "outcome": "fail", "exchanges": [{}]}
        for scenario, example, step in shown
    ]
    passed = {"scenario": "c", "example": "", "step": "", "outcome": "pass", "exchanges": [{}]}
    (found,) = kept.kept({"requirements": [{"id": "X-01", "why": "w", "evidence": [*evidence, passed]}]})[
        "requirements"
    ]

    assert [(each["scenario"], each["example"], each["step"]) for each in found["evidence"]] == [
        ("a", "one", "1"),
        ("a", "two", "1"),
        ("b", "", "1"),
    ]
    assert "why" not in found
    assert not any(each["exchanges"] for each in found["evidence"])


def test_a_run_can_be_had_again(folder: Path, results: dict[str, Any]):
    target, _, version = folder.name.rpartition("-")
    command = (folder / "command.txt").read_text(encoding="utf-8")

    assert command == f"{results['started']}  continuity check {target}=={version} --report DIR\n"


def test_what_was_measured_names_scenarios_that_are_there():
    """In the spec, or in the published results that they are compared with."""
    known = {each.id: {"", *_parts(each)} for each in load_spec().requirements}
    for path in RESULTS.glob("*/results.json"):
        for each in json.loads(path.read_text(encoding="utf-8"))["requirements"]:
            known[each["id"]] |= {evidence["scenario"] for evidence in each["evidence"]}
    named = [measured.named(key) for entry in MEASURED for key in entry.get("shown_by", {})]

    assert [(name, part) for name, part, _ in named if part not in known[name]] == []


def test_every_measurement_is_shown_by_a_verdict_or_it_is_said_why_not():
    seen = [entry for entry in MEASURED if "unseen" not in entry]
    known = {(entry["behaviour"], version) for entry in seen for version in entry["measured"]}

    assert {(row.behaviour, row.version) for row in measured.agreement()} == known


def test_verdicts_agree_with_what_was_measured_or_it_is_said_why_not():
    found = measured.disagreements()
    explained = [entry["behaviour"] for entry in MEASURED if "because" in entry]

    assert [row for row in found if not row.because] == []
    assert list(dict.fromkeys(row.behaviour for row in found)) == explained


@pytest.mark.parametrize(
    ("shown_by", "verdict"),
    [
        ("X-01", "fail at session, $old"),
        ("X-01 first", "fail at session, $old"),
        ("X-01 first, to step 2", "holds"),
        ("X-01 first, to step 3", "fail at session, $old"),
        ("X-01 second", "fail at status, 404"),
        ("X-01 third", "fail at sees, doubled"),
        ("X-01 fourth", "fail at session, an unnamed one"),
        ("X-01 fifth", "no failure"),
        ("X-01 fifth, to step 1", "holds"),
    ],
)
def test_a_verdict_is_told_as_finely_as_its_evidence(shown_by: str, verdict: str, tmp_path: Path):
    failed = [
        ("first", "3 chat", "session", "continuity-1-old ($old)"),
        ("second", "1 chat", "status", '404 {"error": {}}'),
        ("third", "2 chat", "sees", "red (no answer), red, blue"),
        ("fourth", "3 chat", "session", "8bed0f6e"),
    ]
    evidence = [
        {
            "scenario": scenario,
            "example": "",
            "step": step,
            "expectation": expectation,
            "expected": "red, blue",
            "actual": actual,
        }
        for scenario, step, expectation, actual in failed
    ]
    run = {"requirements": [{"id": "X-01", "verdict": "fail", "evidence": evidence}]}
    (tmp_path / "results.json").write_text(json.dumps(run))

    assert measured.told(tmp_path, shown_by) == verdict


@pytest.mark.parametrize(
    ("expected", "actual", "doubled"),
    [
        ("red, blue", "red (no answer), red, blue", True),
        ("pink, red", "pink, red (no answer), red", True),
        ("red, blue", "red (no answer), red (no answer), red, blue (no answer), red, blue", True),
        ("red, blue, green", "red (no answer), red, green", False),
        ("red, green", "red, blue (no answer), green", False),
        ("red, reddish", "red (no answer), reddish", False),
        ("red, blue", "red, red, blue", False),
    ],
)
def test_a_doubled_history_is_the_expected_one_with_turns_that_are_there_without_their_answer_first(
    expected: str, actual: str, doubled: bool
):
    assert kept.doubles({"expected": expected, "actual": actual}) is doubled


def test_the_pages_are_made_of_the_results():
    made = publish.pages()

    assert set(made) == {RESULTS / "README.md", *(folder / "failures.md" for folder in FOLDERS)}
    assert [path for path, text in made.items() if path.read_text(encoding="utf-8") != text] == []


def test_every_failure_in_the_matrix_leads_to_its_evidence():
    links = re.findall(r"\[✗\]\(([\w.-]+)/failures\.md#([\w-]+)\)", (RESULTS / "README.md").read_text(encoding="utf-8"))
    failed = [(folder.name, each.lower()) for folder in FOLDERS for each in _failing(folder)]
    headings = {
        (folder.name, line.removeprefix("## ").lower())
        for folder in FOLDERS
        for line in (folder / "failures.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("## ")
    }

    assert sorted(links) == sorted(failed)
    assert set(links) <= headings


def test_what_fails_in_the_newest_hermes_stands_in_one_row_of_its_page():
    found = [each for row in _rows_of_hermes() for each in row]

    assert [each for each in _failing(RESULTS / "hermes-0.19.0") if found.count(each) != 1] == []


def test_what_the_doubled_history_of_hermes_blocks_is_named_in_full():
    found = kept.requirements(RESULTS / "hermes-0.19.0").values()
    (row,) = (row for row in _rows_of_hermes() if row[0] == "HISTORY-02")

    assert row[1:] == [each["id"] for each in found if kept.blocked_by(each) == "HISTORY-02"]


@pytest.mark.parametrize("version", IN_CLASSES)
def test_the_doubled_history_of_hermes_is_one_failure(version: str):
    """Whatever else it makes fail is blocked by it."""
    found = kept.requirements(RESULTS / f"hermes-{version}").values()

    assert {each["id"] for each in found if each["verdict"] == "fail" and kept.only_doubles(each)} <= {"HISTORY-02"}


@pytest.mark.parametrize("version", IN_CLASSES)
def test_hermes_is_conformant_in_core_but_for_its_doubled_history(version: str):
    core = kept.classes(RESULTS / f"hermes-{version}")["Core"]
    failing = [
        each["id"]
        for each in kept.requirements(RESULTS / f"hermes-{version}").values()
        if each["class"] == "Core" and each["verdict"] == "fail" and load_spec().requirement(each["id"]).level.binding
    ]

    assert (core["verdict"], failing) in (("conformant", []), ("not_conformant", ["HISTORY-02"]))


def test_the_page_of_hermes_begins_with_the_classes_of_its_runs():
    text = (RESULTS / "hermes.md").read_text(encoding="utf-8").partition("\n## How")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| **")]
    names = kept.classes(RESULTS / "hermes-0.19.0")

    assert rows == [
        [f"**{name}**", *(overview.level(RESULTS / f"hermes-{version}", name) for version in HERMES)] for name in names
    ]


def test_the_newest_hermes_fails_at_most_fifty_requirements_outside_strict():
    found = kept.requirements(RESULTS / "hermes-0.19.0").values()

    assert len([each for each in found if each["verdict"] == "fail" and each["class"] != "Strict"]) <= 50


def _rows_of_hermes() -> list[list[str]]:
    """The requirements in each row of what is found."""
    text = (RESULTS / "hermes.md").read_text(encoding="utf-8")
    _, _, found = text.partition("## What is found")
    rows = [line.split(" | ") for line in found.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    return [ids for row in rows if (ids := re.findall(r"\b[A-Z]+-\d\d\b", row[1]))]


def test_a_page_of_failures_can_be_read_in_a_browser(folder: Path):
    assert (folder / "failures.md").stat().st_size < 300_000


def _failing(folder: Path) -> list[str]:
    return [each["id"] for each in kept.requirements(folder).values() if each["verdict"] == "fail"]


def _parts(requirement: Any) -> list[str]:
    examples = [example for scenario in requirement.scenarios for example in scenario.examples]
    return [scenario.name for scenario in requirement.scenarios] + [
        str(example.get("description", "")) for example in examples
    ]

"""What docs/results publishes: whole runs, accounted for, and in agreement with what was measured by hand."""

import importlib.util
import json
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
import yaml

from continuity_spec import load as load_spec
from continuity_spec.schema import schema

RESULTS = Path(__file__).parents[2] / "docs" / "results"
FOLDERS = sorted(path.parent for path in RESULTS.glob("*/results.json"))
HERMES = ("0.13.0", "0.16.0", "0.17.0", "0.18.2", "0.19.0", "rotating-0.19.0")
MEASURED = yaml.safe_load((RESULTS / "measured.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_results", RESULTS / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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


def test_every_requirement_of_the_release_is_accounted_for(results: dict[str, Any]):
    found = [each["id"] for each in results["requirements"]]

    assert sorted(found) == sorted(load_spec().releases[results["release"]].ids)


def test_nothing_is_in_error(results: dict[str, Any]):
    assert [each["id"] for each in results["requirements"] if each["verdict"] == "error"] == []


def test_the_counts_add_up(results: dict[str, Any]):
    found = Counter(each["verdict"] for each in results["requirements"])

    assert {verdict: count for verdict, count in results["counts"].items() if count} == found


def test_what_is_kept_validates(results: dict[str, Any]):
    jsonschema.Draft202012Validator(schema("results")).validate(results)


def test_every_failure_has_its_transcript(results: dict[str, Any]):
    failed = [each for each in results["requirements"] if each["verdict"] == "fail"]

    assert [each["id"] for each in failed if not all(evidence["failure"] for evidence in each["evidence"])] == []
    assert [each["id"] for each in failed if not each["evidence"]] == []


def test_nothing_of_the_machine_is_told(folder: Path):
    text = (folder / "results.json").read_text(encoding="utf-8")

    assert "/root/" not in text
    assert "/home/" not in text


def test_a_run_can_be_had_again(folder: Path, results: dict[str, Any]):
    target, _, version = folder.name.rpartition("-")
    command = (folder / "command.txt").read_text(encoding="utf-8")

    assert command == f"{results['started']}  continuity check {target}=={version} --report DIR\n"


def test_what_was_measured_names_scenarios_that_are_there():
    known = {each.id: {"", *_parts(each)} for each in load_spec().requirements}
    named = [key.partition(" ") for entry in MEASURED for key in entry.get("shown_by", {})]

    assert [(name, part) for name, _, part in named if part not in known[name]] == []


def test_every_measurement_is_shown_by_a_verdict_or_it_is_said_why_not(make: ModuleType):
    seen = [entry for entry in MEASURED if "unseen" not in entry]
    measured = {(entry["behaviour"], version) for entry in seen for version in entry["measured"]}

    assert {(row.behaviour, row.version) for row in make.agreement()} == measured


def test_verdicts_agree_with_what_was_measured_or_it_is_said_why_not(make: ModuleType):
    found = make.disagreements()
    explained = [entry["behaviour"] for entry in MEASURED if "because" in entry]

    assert [row for row in found if not row.because] == []
    assert list(dict.fromkeys(row.behaviour for row in found)) == explained


def test_the_page_is_made_of_the_results(make: ModuleType):
    assert (RESULTS / "README.md").read_text(encoding="utf-8") == make.page()


def _parts(requirement: Any) -> list[str]:
    examples = [example for scenario in requirement.scenarios for example in scenario.examples]
    return [scenario.name for scenario in requirement.scenarios] + [
        str(example.get("description", "")) for example in examples
    ]

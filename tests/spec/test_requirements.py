"""The bundled requirements: complete, clean, and strong enough that nothing passes them by answering."""

import json
import re
from pathlib import Path

import pytest

from continuity_spec import load_requirements, load_spec
from continuity_spec.expectations import groups
from continuity_spec.lint import lint_files, lint_requirements
from continuity_spec.load.loader import BUNDLED
from continuity_spec.load.schema import schema
from continuity_spec.render.table import as_rows, as_table

SPEC = load_spec()
SCENARIOS = [(entry, scenario) for entry in SPEC.requirements for scenario in entry.scenarios]
EVERY_ENTRY = pytest.mark.parametrize("entry", SPEC.requirements, ids=lambda entry: entry.id)
EVERY_SCENARIO = pytest.mark.parametrize(
    "scenario",
    [scenario for _, scenario in SCENARIOS],
    ids=[f"{entry.id} {scenario.name}".strip() for entry, scenario in SCENARIOS],
)
CATALOGUE = {
    "COMPRESS": range(1, 18),
    "CONCUR": range(1, 8),
    "CONTRACT": (*range(1, 14), *range(20, 24)),
    "DELETE": range(1, 5),
    "DERIVE": range(1, 17),
    "DISCOVER": range(1, 3),
    "DURABLE": range(1, 6),
    "ECHO": range(1, 16),
    "ENV": range(1, 5),
    "ERROR": range(1, 15),
    "HISTORY": range(1, 23),
    "ISOLATE": range(1, 20),
    "MIGRATE": range(1, 10),
    "SLUG": range(1, 29),
    "STREAM": range(1, 8),
}
# These words say something that an answer alone cannot: which session, which turns, which shape.
STRONG = {"session", "sees", "recalls", "headers", "tools", "system", "valid"}


def test_no_id_of_the_areas_is_missing():
    for area, numbers in CATALOGUE.items():
        ids = sorted(entry.id for entry in SPEC.requirements if entry.area == area)

        assert ids == [f"{area}-{number:02}" for number in numbers]


def test_release_1_0_is_in_the_order_of_the_files():
    released = set(SPEC.releases["1.0"].ids)

    assert SPEC.releases["1.0"].ids == tuple(entry.id for entry in SPEC.requirements if entry.id in released)


def test_lint_has_nothing_to_say():
    assert lint_files(sorted((BUNDLED / "requirements").glob("*.yaml"))) == []
    assert lint_requirements(SPEC.requirements) == []


def test_a_file_holds_one_area_and_is_named_by_it():
    for path in (BUNDLED / "requirements").glob("*.yaml"):
        assert {entry.area.lower() for entry in load_requirements(path)} == {path.stem}


@EVERY_ENTRY
def test_defects_prove_every_entry_that_runs(entry):
    assert bool(entry.refuted_by) == (entry.how != "manual")


@EVERY_SCENARIO
def test_every_scenario_expects_something_strong(scenario):
    words = {word for step in scenario.walk() for group in groups(step.expect) for word in group}

    assert words & STRONG


@EVERY_SCENARIO
def test_every_turn_is_looked_at(scenario):
    """A turn without expectation is allowed where it only prepares a compression."""
    silent = [step.text for step in scenario.walk() if step.verb in {"chat", "respond"} and not step.expect]

    assert [text for text in silent if "compress: true" not in text] == []


@pytest.mark.parametrize("entry", [e for e in SPEC.requirements if e.area == "DERIVE"], ids=lambda entry: entry.id)
def test_derivation_is_asked_only_of_servers_that_derive(entry):
    always_asked = {"DERIVE-14", "DERIVE-15", "DERIVE-16"}

    assert ("none" in entry.when.get("derivation", ("none",))) == (entry.id in always_asked)


def ids_told(scenario):
    return {str(group["session"]) for step in scenario.walk() for group in groups(step.expect) if "session" in group}


@pytest.mark.parametrize(
    "scenario",
    [scenario for entry, scenario in SCENARIOS if entry.area == "DERIVE" and not scenario.vectors],
    ids=lambda scenario: scenario.name,
)
def test_a_constant_id_passes_no_scenario_of_derivation_by_its_ids_alone(scenario):
    """Either two ids must differ, or the model's view tells the turns apart."""
    looked_into = any("sees" in group for step in scenario.walk() for group in groups(step.expect))

    assert len(ids_told(scenario)) > 1 or looked_into


def test_vectors_are_loaded():
    derive = {entry.id: entry for entry in SPEC.requirements}
    for wanted, name in (("DERIVE-04", "vectors/derivation-v1.json"), ("DERIVE-12", "vectors/derivation-v2.json")):
        scenario = derive[wanted].scenarios[0]

        assert scenario.vectors == name
        assert scenario.examples
        assert all({"description", "messages", "id"} <= set(example) for example in scenario.examples)


def test_calm_scenarios_stay_calm():
    disturbing = {entry.id for entry, scenario in SCENARIOS if scenario.disturbing}

    assert disturbing == {
        "COMPRESS-03",
        "CONCUR-06",
        "DELETE-01",
        "DERIVE-11",
        "DURABLE-01",
        "DURABLE-02",
        "DURABLE-05",
        "DURABLE-03",
        "ENV-03",
        "ERROR-13",
        "HISTORY-05",
        "HISTORY-06",
        "HISTORY-07",
        "HISTORY-11",
        "HISTORY-14",
        "ISOLATE-07",
        "MIGRATE-01",
        "MIGRATE-02",
        "MIGRATE-03",
        "MIGRATE-04",
        "MIGRATE-05",
        "MIGRATE-06",
        "MIGRATE-07",
        "MIGRATE-09",
        "SLUG-04",
        "SLUG-05",
        "SLUG-06",
        "SLUG-11",
        "SLUG-15",
        "SLUG-17",
        "SLUG-19",
        "STREAM-03",
    }


def test_rows_are_json_with_every_requirement():
    rows = json.loads(json.dumps(as_rows(SPEC)))

    assert [row["id"] for row in rows] == [entry.id for entry in SPEC.requirements]
    assert {row["checked_by"] for row in rows} == {"scenario", "always", "check", "manual"}
    assert {row["id"] for row in rows if "1.0" in row["releases"]} == set(SPEC.releases["1.0"].ids)


@pytest.mark.parametrize("width", [60, 100, 200])
def test_the_table_keeps_to_its_width(width):
    table = as_table(SPEC, width)

    assert max(map(len, table.splitlines())) <= width
    assert all(entry.id in table for entry in SPEC.requirements)


def test_every_word_of_the_schema_is_in_the_reference():
    reference = (Path(__file__).parents[2] / "docs" / "reference" / "vocabulary.md").read_text(encoding="utf-8")
    forms = schema("requirements")["$defs"]
    words = {word for form in ("act", "chat", "respond", "expectations") for word in forms[form]["properties"]}
    named = {word for word in words if not word.startswith("by ")}

    assert [word for word in sorted(named) if not re.search(rf"`{word}\b", reference)] == []

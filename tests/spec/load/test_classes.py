"""classes.yaml: each requirement of a release is in exactly one class, and a mistake in the file is reported at its place."""

import re
from pathlib import Path

import pytest

from continuity_spec import InconsistentSpecError, load_requirements, load_spec
from continuity_spec.load.classes import load_classes
from continuity_spec.load.loader import BUNDLED

SPEC = load_spec()
TEXT = (BUNDLED / "classes.yaml").read_text(encoding="utf-8")
ENTRIES = [entry for path in sorted((BUNDLED / "requirements").glob("*.yaml")) for entry in load_requirements(path)]


def test_every_requirement_of_a_release_is_in_one_class():
    listed = [identity for each in SPEC.classes for identity in each.ids]
    released = {identity for release in SPEC.releases.values() for identity in release.ids}

    assert sorted(listed) == sorted(set(listed))
    assert released <= set(listed)


def test_a_requirement_knows_its_class():
    assert SPEC.requirement("HISTORY-02").class_name == "Core"


def test_core_requires_nothing_and_every_rung_of_the_ladder_requires_core():
    assert SPEC.classes[0].requires == ()
    assert all(each.requires == ("Core",) for each in SPEC.classes[1:] if each.decides)


def test_a_spec_may_have_no_classes(tmp_path: Path):
    assert load_classes(tmp_path / "classes.yaml", ENTRIES) == ((), ())


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("[HISTORY-02, ", "[HISTORY-99, ", "no requirement has the id HISTORY-99"),
        ("[HISTORY-02, ", "[HISTORY-02, SLUG-01, ", "SLUG-01 is in the class Core too"),
        ("requires: [Core]", "requires: [Strict]", "no class above this one is called Strict"),
        ("name: Responses", "name: Core", "the name Core is used twice"),
        ("essential: SLUG-13", "essential: HISTORY-02", "this class does not have HISTORY-02"),
    ],
)
def test_a_mistake_is_reported_at_its_place(tmp_path: Path, before: str, after: str, message: str):
    path = tmp_path / "classes.yaml"
    path.write_text(TEXT.replace(before, after, 1), encoding="utf-8")

    with pytest.raises(InconsistentSpecError, match=re.escape(message)) as raised:
        load_classes(path, ENTRIES)

    assert re.match(r"classes\.yaml:\d+:\d+", raised.value.where)


def test_a_selection_names_scenarios_that_exist(tmp_path: Path):
    path = tmp_path / "classes.yaml"
    wrong = "selections: [{name: Some, claim: It works., scenarios: {HISTORY-02: [plain tuns]}}]"
    path.write_text(re.sub(r"^selections:.*", wrong, TEXT, flags=re.MULTILINE | re.DOTALL), encoding="utf-8")

    with pytest.raises(InconsistentSpecError, match="HISTORY-02 has no scenario plain tuns"):
        load_classes(path, ENTRIES)

"""Every requirement is failed by the defects made for it, and the matrix that is published is the one that is measured."""

import json

import pytest
from matrix import FILE, at_home, defects, made_for, play, played_on, rows, without_races

from continuity_conformance.verdicts import Verdict
from continuity_spec import load

PUBLISHED = json.loads(FILE.read_text(encoding="utf-8"))
DEFECTS = {defect.name: defect for defect in defects()}
CHECKABLE = [requirement for requirement in load().requirements if requirement.manual is None]


@pytest.fixture(scope="module")
def measured(request):
    """The rows of the selected defects, measured side by side before the first of them is compared."""
    names = [item.callspec.params["name"] for item in request.session.items if "measured" in item.fixturenames]
    return rows([DEFECTS[name] for name in names], at_home)


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_fails_what_the_matrix_says(name, measured):
    home = made_for(name)
    played = {requirement.id for requirement in played_on(name, {requirement.area for requirement in home})}
    found = measured[name]

    assert {requirement.id for requirement in home} <= set(found)
    assert without_races(found) == without_races(PUBLISHED[name], played)


def test_every_defect_is_named_by_a_requirement():
    named = {name for requirement in CHECKABLE for name in requirement.refuted_by}

    assert named == set(DEFECTS)


def test_the_published_matrix_has_every_defect():
    assert set(PUBLISHED) == set(DEFECTS)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"derivation": "content-v2"},
        {"derivation": "none"},
        {"compaction": "in-place"},
        {"echo": "alias"},
        {"degraded": "refuse"},
        {"turns": "reject"},
        {"environment": "per-session"},
        {"tells": "nothing"},
    ],
    ids=lambda options: " ".join(options.values()) or "default",
)
def test_without_a_defect_nothing_fails(options):
    """A target that tells nothing fails ECHO-01, which asks for just that, and nothing else."""
    verdicts = {result.id: result.verdict for result in play(options=options)}
    failed = {identity for identity, verdict in verdicts.items() if verdict in {Verdict.FAIL, Verdict.ERROR}}

    assert failed == ({"ECHO-01"} if options == {"tells": "nothing"} else set())


def test_with_all_controls_nothing_is_untested():
    untested = [result.id for result in play() if result.verdict is Verdict.NOT_TESTED]

    assert untested == [requirement.id for requirement in load().requirements if requirement.manual is not None]

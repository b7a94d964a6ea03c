"""Every requirement is failed by the defects made for it, and the matrix that is published is the one that is measured."""

import json

import pytest
from matrix import FILE, UNSTEADY, at_home, defects, made_for, play, played_on, rows

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
    assert name in UNSTEADY or found == {entry: where for entry, where in PUBLISHED[name].items() if entry in played}


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
        {"environment": "none"},
    ],
    ids=lambda options: " ".join(options.values()) or "default",
)
def test_without_a_defect_nothing_fails_and_nothing_is_untested(options):
    """Under every value of every option. What is left is for a reviewer."""
    verdicts = {result.id: result.verdict for result in play(options=options)}
    decided = {identity for identity, verdict in verdicts.items() if verdict in {Verdict.PASS, Verdict.NOT_APPLICABLE}}

    assert set(verdicts) - decided == {entry.id for entry in load().requirements if entry.manual is not None}


def test_a_target_that_tells_nothing_fails_just_that():
    """ECHO-01 asks for the header. Elsewhere the session is unobserved, not failed."""
    failed = {result.id for result in play(options={"tells": "nothing"}) if result.verdict is Verdict.FAIL}

    assert failed == {"ECHO-01"}

"""The diagnosis of the published runs agrees with what people found by reading their evidence (docs/results/hermes.md)."""

import re
from collections import Counter
from pathlib import Path

import pytest

from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.diagnose.causes import causes, known
from continuity_conformance.diagnose.match import Knowledge
from continuity_conformance.diagnose.symptoms import Symptoms
from continuity_conformance.results.read import read

RESULTS = Path(__file__).parents[2] / "docs" / "results"
HERMES = ["hermes-0.13.0", "hermes-0.16.0", "hermes-0.17.0", "hermes-0.18.2", "hermes-0.19.0"]
ID = re.compile(r"\b([A-Z]+)-(\d\d)\b((?:, -\d\d)*)")


def by_hand() -> dict[str, str]:
    """Each requirement with the cause that hermes.md gives for its failure: the first column of its row. The class Strict is one cause."""
    page = (RESULTS / "hermes.md").read_text(encoding="utf-8")
    found = page[page.index("## What is found") : page.index("## What is not tested")]
    labels: dict[str, str] = {}
    for section in found.split("\n##")[1:]:
        rows = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| ")]
        for cause, named in rows:
            label = "Strict" if section.startswith("# Strict") else cause.strip()
            labels |= dict.fromkeys(ids(named.partition(";")[0]), label)
    return labels


def ids(text: str) -> list[str]:
    """The ids in a text; "COMPRESS-01, -02" are two."""
    return [
        f"{area}-{number}" for area, first, more in ID.findall(text) for number in [first, *re.findall(r"\d\d", more)]
    ]


@pytest.mark.parametrize("name", HERMES)
def test_failures_are_assigned_to_the_cause_that_was_found_by_hand(name):
    report, hand = read(RESULTS / name / "results.json"), by_hand()
    failed = {row.result.id for row in report.with_verdict(Verdict.FAIL)} & hand.keys()
    agreeing = 0
    for cause in causes(report.results):
        labels = Counter(hand[identity] for identity in cause.explains if identity in failed)
        agreeing += max(labels.values(), default=0)

    assert agreeing >= 0.85 * len(failed)


def test_hermes_0_19_0_has_at_most_twenty_causes():
    assert len(causes(read(RESULTS / "hermes-0.19.0" / "results.json").results)) <= 20


@pytest.mark.parametrize("name", sorted(path.name for path in RESULTS.iterdir() if (path / "results.json").is_file()))
def test_every_failure_of_a_published_run_has_one_cause(name):
    report = read(RESULTS / name / "results.json")
    explained = Counter(identity for cause in causes(report.results) for identity in cause.explains)

    assert explained == Counter(row.result.id for row in report.with_verdict(Verdict.FAIL))


@pytest.mark.parametrize("name", HERMES)
def test_more_defects_that_a_run_cannot_show_change_no_cause(name):
    results = read(RESULTS / name / "results.json").results
    others = {f"another-defect-{number}": Symptoms({}, frozenset()) for number in range(40)}
    more = Knowledge({**known().signatures, **others}, known().made_for)

    assert [(each.defect, each.explains) for each in causes(results, more)] == [
        (each.defect, each.explains) for each in causes(results)
    ]

"""The sample output in README.md has the figures and the words of this release."""

import re
import textwrap
from collections import Counter
from pathlib import Path

from continuity_spec import load_spec

SPEC = load_spec()
README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
AREAS = Counter(SPEC.requirement(identity).area for each in SPEC.classes for identity in each.ids)


def counted(name: str) -> int:
    """All verdicts of a row of the table."""
    row = re.search(rf"^{name}((?: +\d+){{4}})$", README, re.MULTILINE)
    return sum(int(number) for number in row[1].split()) if row else 0


def test_each_row_has_every_requirement_of_its_area():
    assert {area: counted(area) for area in AREAS} == AREAS


def test_the_total_is_the_number_of_requirements():
    assert counted("total") == AREAS.total()
    assert f" of {AREAS.total()} · " in README


def test_every_class_has_a_verdict():
    verdicts = re.sub(r"\s+", " ", README)

    assert [each.name for each in SPEC.classes if f"{each.name}: conformant" not in verdicts] == []


def test_the_failure_quotes_its_requirement():
    head = f"HISTORY-02 (MUST) is not met: {SPEC.requirement('HISTORY-02').text}"

    assert textwrap.fill(head, 100, subsequent_indent="  ") in README


def test_an_example_of_a_class_on_its_way_has_its_number_of_requirements():
    passed, applicable, following = re.findall(r"`Responses: (\d+) of (\d+), next: ([A-Z]+-\d+)`", README)[0]
    responses = next(each for each in SPEC.classes if each.name == "Responses")
    binding = [identity for identity in responses.ids if SPEC.requirement(identity).level.binding]

    assert int(passed) < int(applicable) == len(binding)
    assert following in binding

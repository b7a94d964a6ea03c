"""What README.md quotes is what this release says. tests/e2e/test_commands_in_docs.py runs its commands and compares their output."""

import re
import textwrap
from pathlib import Path

from continuity_spec import load_spec

SPEC = load_spec()
README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_purpose_and_a_finding_come_before_anything_to_install():
    assert (
        README.index("People talk to AI agents") < README.index("docs/assets/finding.svg") < README.index("## Install")
    )


def test_nothing_is_installed_from_a_place_where_it_is_not():
    """There is no release on PyPI yet."""
    assert (
        re.findall(r"pip install session-continuity|uvx session-continuity|pipx run session-continuity", README) == []
    )


def test_the_failure_quotes_its_requirement():
    head = f"HISTORY-02 (MUST) is not met: {SPEC.requirement('HISTORY-02').text}"

    assert textwrap.fill(head, 100, subsequent_indent="  ") in README


def test_an_example_of_a_class_on_its_way_has_its_number_of_requirements():
    passed, applicable, following = re.findall(r"`Responses: (\d+) of (\d+), next: ([A-Z]+-\d+)`", README)[0]
    responses = next(each for each in SPEC.classes if each.name == "Responses")
    binding = [identity for identity in responses.ids if SPEC.requirement(identity).level.binding]

    assert int(passed) < int(applicable) == len(binding)
    assert following in binding

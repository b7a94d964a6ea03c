"""docs/explanation/seeds.md is true: what it names holds what the seeds say, and nothing of a seed is left out."""

import re
from pathlib import Path

import pytest

from continuity_spec import load_spec

SPEC = load_spec()
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "seeds.md"
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
"""The text of each section, by the seed that it is about."""
ROWS = [
    (seed, *re.fullmatch(r"\| (.+) \| (.+) \|", line).groups())
    for seed, text in SECTIONS.items()
    for line in text.splitlines()
    if line.startswith("| ") and "held by" not in line
]
ORIGINS = {entry.id: set(entry.origin) for entry in SPEC.requirements}


def ids(cell):
    return cell.split(", ")


@pytest.mark.parametrize(("seed", "said", "held_by"), ROWS, ids=[f"{seed}: {said}" for seed, said, _ in ROWS])
def test_what_a_seed_says_is_held_by_requirements_that_name_it(seed, said, held_by):
    assert said
    assert [wanted for wanted in ids(held_by) if seed not in ORIGINS.get(wanted, set())] == []


@pytest.mark.parametrize("seed", SECTIONS)
def test_a_requirement_that_names_a_seed_stands_in_its_section(seed):
    named = {wanted for section, _, held_by in ROWS for wanted in ids(held_by) if section == seed}

    assert named == {wanted for wanted, origins in ORIGINS.items() if seed in origins}


def test_every_seed_has_its_section():
    assert list(SECTIONS) == [
        "hermes-agent@61c1fd08cc",
        "hermes-agent#3438",
        "hermes-agent@7a3ccea42e",
        "hermes-agent@558971f44d",
        "hermes-agent#16938",
        "hermes-agent PR 17019",
        "hermes-agent PR 17060",
        "hermes-agent#16517",
        "hermes-agent PR 16607",
        "hermes-agent PR 16635",
    ]


@pytest.mark.parametrize(
    ("seed", "beginning", "count"),
    [
        ("hermes-agent PR 16607", "Behaviour: ", 6),
        ("hermes-agent PR 16607", "Test: ", 11),
        ("hermes-agent#16938", "Expected ", 3),
        ("hermes-agent#16938", "Streaming: ", 1),
        ("hermes-agent@61c1fd08cc", "`TestDeriveChatSessionId.", 5),
        ("hermes-agent@7a3ccea42e", "`test_", 4),
        ("hermes-agent PR 16635", "`test_", 3),
    ],
)
def test_a_table_of_a_seed_is_there_row_by_row(seed, beginning, count):
    assert len([said for section, said, _ in ROWS if section == seed and said.startswith(beginning)]) == count


def test_where_two_seeds_meet_both_are_named():
    assert {"hermes-agent#16517", "hermes-agent#16938"} <= ORIGINS["SLUG-11"]

"""docs/explanation/seeds.md is true: it names scenarios that exist, exactly those of the selection Hermes, and leaves nothing of a seed out."""

import re
from pathlib import Path

import pytest

from continuity_spec import load_spec

SPEC = load_spec()
REQUIREMENTS = {entry.id: entry for entry in SPEC.requirements}
HERMES = next(selection for selection in SPEC.selections if selection.name == "Hermes")
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "seeds.md"
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
"""The text of each section, by its heading."""
SEEDS = [heading for heading in SECTIONS if heading.startswith("hermes-agent")]
NONE = "*none*: "


def rows(heading):
    """The cells of the table of a section, without its head."""
    lines = [line for line in SECTIONS[heading].splitlines() if line.startswith("| ")]
    return [re.split(r" \| ", line[2:-2]) for line in lines[1:]]


ROWS = [(seed, said, checked_by) for seed in SEEDS for said, checked_by in rows(seed)]
CHECKED = [row for row in ROWS if not row[2].startswith(NONE)]
BEYOND = {identity: seeds.split(", ") for identity, seeds, _ in rows("More than the seeds")}


def named(checked_by):
    """The scenarios of a cell, as pairs of id and name. The only scenario of a requirement has no name."""
    for entry in checked_by.split("<br>"):
        identity, _, names = entry.partition(": ")
        yield from ((identity, name) for name in names.split("; "))


def scenarios(identity):
    """The names of all scenarios of a requirement. One that has none of its own, such as a check, counts as one without a name."""
    return [scenario.name for scenario in REQUIREMENTS[identity].scenarios] or [""]


def ids_of(rows_of_a_seed):
    return {identity for _, _, checked_by in rows_of_a_seed for identity, _ in named(checked_by)}


def selected():
    return {(identity, name) for identity, names in HERMES.scenarios.items() for name in names or scenarios(identity)}


@pytest.mark.parametrize(("seed", "said", "checked_by"), CHECKED, ids=[f"{seed}: {said}" for seed, said, _ in CHECKED])
def test_what_a_seed_says_is_checked_by_scenarios_of_requirements_that_name_it(seed, said, checked_by):
    assert said
    assert [(identity, name) for identity, name in named(checked_by) if name not in scenarios(identity)] == []
    assert [identity for identity, _ in named(checked_by) if seed not in REQUIREMENTS[identity].origin] == []


def test_what_no_scenario_checks_has_a_reason():
    reasons = [checked_by.removeprefix(NONE) for _, _, checked_by in ROWS if checked_by.startswith(NONE)]

    assert reasons
    assert all(reasons)


def test_the_page_names_only_scenarios_of_the_selection():
    on_the_page = {each for _, _, checked_by in CHECKED for each in named(checked_by)}

    assert on_the_page - selected() == set()


def test_the_selection_has_only_scenarios_of_the_page():
    on_the_page = {each for _, _, checked_by in CHECKED for each in named(checked_by)}

    assert selected() - on_the_page == set()


def test_all_scenarios_are_selected_only_where_there_is_one():
    assert [
        identity for identity, names in HERMES.scenarios.items() if not names and len(scenarios(identity)) > 1
    ] == []


def test_every_seed_has_its_section():
    assert SEEDS == [
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


@pytest.mark.parametrize("seed", SEEDS)
def test_a_requirement_that_names_a_seed_stands_in_its_section_or_asks_more(seed):
    in_the_section = ids_of([row for row in CHECKED if row[0] == seed])
    asking_more = {identity for identity, seeds in BEYOND.items() if seed in seeds}

    assert in_the_section | asking_more == {
        identity for identity, entry in REQUIREMENTS.items() if seed in entry.origin
    }


def test_what_asks_more_than_the_seeds_is_not_selected():
    assert set(BEYOND) & set(HERMES.scenarios) == set()


@pytest.mark.parametrize(
    ("seed", "test"),
    [
        ("hermes-agent@61c1fd08cc", "test_stable_session_id_across_turns"),
        ("hermes-agent@61c1fd08cc", "test_different_conversations_get_different_session_ids"),
        ("hermes-agent@61c1fd08cc", "TestDeriveChatSessionId.test_deterministic"),
        ("hermes-agent@61c1fd08cc", "TestDeriveChatSessionId.test_prefix"),
        ("hermes-agent@61c1fd08cc", "TestDeriveChatSessionId.test_different_system_prompt"),
        ("hermes-agent@61c1fd08cc", "TestDeriveChatSessionId.test_different_first_message"),
        ("hermes-agent@61c1fd08cc", "TestDeriveChatSessionId.test_none_system_prompt"),
        ("hermes-agent@7a3ccea42e", "test_new_session_response_includes_session_id_header"),
        ("hermes-agent@7a3ccea42e", "test_provided_session_id_is_used_and_echoed"),
        ("hermes-agent@7a3ccea42e", "test_provided_session_id_loads_history_from_db"),
        ("hermes-agent@7a3ccea42e", "test_db_failure_falls_back_to_empty_history"),
        ("hermes-agent PR 16635", "test_conversation_continues_session_after_response_eviction"),
        ("hermes-agent PR 16635", "test_conversation_session_persisted_on_set"),
        ("hermes-agent PR 16635", "test_previous_response_id_still_404s_without_conversation"),
    ],
)
def test_a_named_test_of_a_seed_has_its_row(seed, test):
    assert f"`{test}`" in [said for section, said, _ in CHECKED if section == seed]


@pytest.mark.parametrize(
    ("seed", "beginning", "count"),
    [
        ("hermes-agent PR 16607", "Behaviour: ", 6),
        ("hermes-agent PR 16607", "Test: ", 11),
        ("hermes-agent PR 17019", "Table: ", 2),
        ("hermes-agent#16938", "Expected ", 3),
        ("hermes-agent#16938", "Streaming: ", 1),
    ],
)
def test_a_table_or_list_of_a_seed_is_there_row_by_row(seed, beginning, count):
    assert len([said for section, said, _ in CHECKED if section == seed and said.startswith(beginning)]) == count


def test_where_two_seeds_meet_both_are_named():
    assert {"hermes-agent#16517", "hermes-agent#16938"} <= set(REQUIREMENTS["SLUG-11"].origin)

"""Files become checked types, and files that contradict each other are refused with the place."""

import json
import textwrap

import pytest

from continuity_spec import (
    Level,
    NotJsonError,
    Place,
    SpecError,
    UnknownRequirement,
    UnreadableFileError,
    load_requirements,
    load_spec,
)


@pytest.fixture
def entry(write, entry_text):
    [entry] = load_requirements(write(entry_text))
    return entry


def test_a_requirement_has_the_fields_of_its_entry(entry):
    assert (entry.id, entry.area, entry.level, entry.how) == ("SLUG-03", "SLUG", Level.MUST_NOT, "scenario")
    assert entry.origin == ("hermes-agent#16517",)
    assert entry.refuted_by == ("slug-forks-on-eviction",)


def test_option_values_are_always_tuples(entry):
    expected = {"turns": ("serialize",), "derivation": ("content-v1", "content-v2")}

    assert entry.when == expected
    assert entry.scenarios[0].when == expected


def test_places_count_from_one(entry):
    assert entry.place.line == 1
    assert str(entry.scenarios[0].steps[1].place).endswith("slug.yaml:10:7")
    assert str(Place("requirements/slug.yaml", 12, 5)) == "requirements/slug.yaml:12:5"


def test_steps_keep_verb_params_expectations_and_parts(entry):
    first, evict, together, chat, broken, control = entry.scenarios[0].steps

    assert (first.verb, first.params) == ("respond", {"conversation": "$slug", "say": "red"})
    assert list(first.expect) == ["session", "response"]
    assert (evict.expect, evict.at_once) == ({}, 1)
    assert [(part.verb, part.at_once) for part in together.together] == [("respond", 3), ("restart", 1)]
    assert [part.verb for part in chat.during] == ["kill"]
    assert broken.params == {"what": "reads"}
    assert control.params == {"name": "damage-lineage", "params": {"session": "$s", "how": "cycle"}}


def test_the_text_of_a_step_is_one_line_without_expectations(entry):
    first, _, together, chat, broken, _ = entry.scenarios[0].steps

    assert first.text == "respond {conversation: $slug, say: red}"
    assert together.text == 'together [respond {as: bob, conversation: $slug, say: "still here?"} at_once 3; restart]'
    assert chat.text == "chat {session: $s, say: blue, stream: true, model: fails} during [kill]"
    assert broken.text == "break_store reads"


def test_needs_and_controls_are_inferred_from_the_steps(entry):
    scenario = entry.scenarios[0]

    assert scenario.needs == {"chat", "responses", "streaming", "tenants"}
    assert scenario.controls == {"evict", "restart", "kill", "break_store", "control:damage-lineage"}
    assert scenario.principals == {"alice", "bob"}
    assert scenario.disturbing
    assert scenario.uses_model


@pytest.mark.parametrize(
    ("step", "needs"),
    [
        ("get: {session: $s}", {"sessions"}),
        ("delete: {response: $r}", {"responses", "stored-responses"}),
        ("chat: {say: red, compress: true}", {"chat", "compression"}),
        ("chat: {say: red, model: calls client}", {"chat", "client-tools"}),
        ("chat: {returns: red}", {"chat", "client-tools"}),
        ("chat: {say: red, stream: false}", {"chat"}),
        ("request: {method: PUT, path: /v1/chat/completions}", {"chat"}),
        ("respond: {say: red}", {"responses"}),
        ("evict: {response: $r}", {"responses"}),
        ("get: {path: /v1/conversations/x}", {"conversations"}),
        ("get: {path: /health}", set()),
    ],
)
def test_a_step_shows_what_the_target_must_offer(write, step, needs):
    [entry] = load_requirements(write(calm_entry(step)))

    assert entry.scenarios[0].needs == needs
    assert not entry.scenarios[0].disturbing


def calm_entry(step):
    return f"""
    - id: AREA-01
      level: MUST
      text: What is said here is true of a server.
      why: Somebody is hurt where it is not.
      steps:
        - {step}
      refuted_by: [some-defect]
    """


def test_examples_come_from_a_file_of_vectors(write):
    vectors = [{"description": "one", "messages": [], "id": "x"}]
    write(json.dumps(vectors), "vectors/some.json")
    text = calm_entry("chat: {messages: $messages}").replace("steps:", "examples: vectors/some.json\n      steps:")
    [entry] = load_requirements(write(text, "requirements/area.yaml"))

    assert entry.scenarios[0].examples == tuple(vectors)
    assert entry.scenarios[0].vectors == "vectors/some.json"


@pytest.mark.parametrize("text", ["{", "{}", "[]", "[1]", "[{}]"])
def test_vectors_are_a_list_of_objects(write, text):
    write(text, "vectors/some.json")
    entry = calm_entry("chat: {messages: $messages}").replace("steps:", "examples: vectors/some.json\n      steps:")

    with pytest.raises(SpecError, match=r"vectors/some\.json"):
        load_requirements(write(entry, "requirements/area.yaml"))


def test_deep_vectors_are_refused(write):
    write("[" * 100_000, "vectors/some.json")
    entry = calm_entry("chat: {messages: $messages}").replace("steps:", "examples: vectors/some.json\n      steps:")

    with pytest.raises(NotJsonError, match="nested too deep"):
        load_requirements(write(entry, "requirements/area.yaml"))


def test_an_unknown_id_names_the_nearest():
    with pytest.raises(UnknownRequirement, match='Did you mean "HISTORY-05"'):
        load_spec().requirement("HISTRY-05")


def test_the_bundled_spec_is_read_once():
    assert load_spec() is load_spec()


def spec_folder(write, entries, release):
    path = write(entries, "spec/requirements/area.yaml")
    write(release, "spec/releases/1.0.yaml")
    return path.parent.parent


def test_an_id_is_used_once(write):
    entry = textwrap.dedent(calm_entry("chat: {say: red}"))
    folder = spec_folder(write, entry + entry, 'release: "1.0"\nids: [AREA-01]\n')

    with pytest.raises(
        SpecError, match=r"requirements/area.yaml:10:3: the id AREA-01 is already used at requirements/area.yaml:2:3"
    ):
        load_spec(folder)


def test_a_release_names_requirements_that_exist(write):
    folder = spec_folder(write, calm_entry("chat: {say: red}"), 'release: "1.0"\nids: [AREA-01, AREA-02]\n')

    with pytest.raises(
        SpecError, match=r'releases/1.0.yaml:2:16: no requirement has the id AREA-02. Did you mean "AREA-01"'
    ):
        load_spec(folder)


def test_a_folder_without_requirements_is_not_a_spec(tmp_path):
    with pytest.raises(UnreadableFileError, match=r"no requirements/\*\.yaml"):
        load_spec(tmp_path)

"""The loader: files become checked types, and whatever is wrong with a file is said with its place."""

import json
import textwrap

import jsonschema
import pytest

from continuity_spec import (
    Level,
    NotJsonError,
    NotYamlError,
    Place,
    SchemaViolationError,
    SpecError,
    UnknownRequirement,
    UnreadableFileError,
    load,
    load_checked,
    load_requirements,
    read_yaml,
)
from continuity_spec.loader import BUNDLED
from continuity_spec.schema import schema, violations
from continuity_spec.yaml_source import DEEPEST

ENTRY = """\
- id: SLUG-03
  level: MUST NOT
  text: A slug keeps its session after an eviction.
  why: Otherwise every eviction forks the conversation.
  origin: [hermes-agent#16517]
  when: {turns: serialize, derivation: [content-v1, content-v2]}
  steps:
    - respond: {conversation: $slug, say: red}
      expect: {session: $s, response: $gone}
    - evict: {response: $gone}
    - together:
        - respond: {as: bob, conversation: $slug, say: "still here?"}
          at_once: 3
        - restart
    - chat: {session: $s, say: blue, stream: true, model: fails}
      during: [kill]
    - break_store: reads
    - control: {damage-lineage: {session: $s, how: cycle}}
  refuted_by: [slug-forks-on-eviction]
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="slug.yaml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write


@pytest.fixture
def entry(write):
    [entry] = load_requirements(write(ENTRY))
    return entry


def complaint(path, form="requirements"):
    with pytest.raises(SpecError) as caught:
        load_checked(path, form)
    return caught.value


def test_an_entry_has_its_words(entry):
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


def test_what_the_steps_show_is_inferred(entry):
    scenario = entry.scenarios[0]

    assert scenario.needs == {"responses", "streaming", "tenants"}
    assert scenario.controls == {"evict", "restart", "kill", "break_store", "control:damage-lineage"}
    assert scenario.principals == {"alice", "bob"}
    assert scenario.disturbing
    assert scenario.uses_model


@pytest.mark.parametrize(
    ("step", "needs"),
    [
        ("get: {session: $s}", {"sessions"}),
        ("delete: {response: $r}", {"responses"}),
        ("chat: {say: red, compress: true}", {"compression"}),
        ("chat: {say: red, model: calls client}", {"client-tools"}),
        ("chat: {returns: red}", {"client-tools"}),
        ("chat: {say: red, stream: false}", set()),
        ("get: {path: /health}", set()),
    ],
)
def test_offers_are_inferred_from(write, step, needs):
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


def test_words_of_other_yaml_readers_stay_strings(write):
    path = write("{on: no, time: 1:30, day: 2026-01-31, yes: off, number: 010, true: 1.5, none: ~}")

    assert read_yaml(path).data == {
        "on": "no",
        "time": "1:30",
        "day": "2026-01-31",
        "yes": "off",
        "number": "010",
        "true": 1.5,
        "none": None,
    }


def test_a_key_that_is_said_twice_is_an_error(write):
    with pytest.raises(NotYamlError) as caught:
        read_yaml(write("- a: 1\n  b: 2\n  a: 3\n"))

    assert caught.value.where.endswith("slug.yaml:3:3")
    assert caught.value.what == 'the key "a" is said twice'


@pytest.mark.parametrize(
    "text", ["a: [1, 2", "a: {b: ${x}}", "a: *nobody", 'a: "\x01"', "a: !!python/name:os.system x", "a\n---\nb"]
)
def test_what_is_no_yaml_is_told_without_a_traceback(write, text):
    with pytest.raises(NotYamlError, match=r"slug\.yaml"):
        read_yaml(write(text))


NINE_TIMES_EACH = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        (f"a0: &a0 [x]\n{NINE_TIMES_EACH}", "2:10", 'the alias "*a0" is not allowed'),
        ("a: &a [*a]\n", "1:8", 'the alias "*a" is not allowed'),
        ("[" * 100_000, "1:51", "nested more than 50 levels deep"),
        ("{a: " * 100_000, "1:201", "nested more than 50 levels deep"),
        ("- " * 100_000, "1:101", "nested more than 50 levels deep"),
        ("a: " + "9" * 5_000, "1:4", "a number has too many digits"),
        ("a\n---\nb", "2:1", "a second document begins"),
    ],
    ids=["alias bomb", "recursive alias", "lists", "mappings", "block lists", "digits", "two documents"],
)
def test_a_hostile_file_is_refused_at_once(write, text, where, what):
    with pytest.raises(NotYamlError) as caught:
        read_yaml(write(text))

    assert caught.value.where.endswith(f"slug.yaml:{where}")
    assert caught.value.what == what


@pytest.mark.parametrize("form", ["requirements", "profile"])
def test_the_deepest_allowed_file_is_judged_by_its_schema(write, form):
    error = complaint(write("[" * DEEPEST + "]" * DEEPEST), form)

    assert isinstance(error, SchemaViolationError)


def test_deep_vectors_are_refused(write):
    write("[" * 100_000, "vectors/some.json")
    entry = calm_entry("chat: {messages: $messages}").replace("steps:", "examples: vectors/some.json\n      steps:")

    with pytest.raises(NotJsonError, match="nested too deep"):
        load_requirements(write(entry, "requirements/area.yaml"))


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(UnreadableFileError, match="cannot be read"):
        read_yaml(tmp_path / "nowhere.yaml")


def test_a_file_that_is_not_utf8_is_told(tmp_path):
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"a: \xe9\n")

    with pytest.raises(UnreadableFileError, match="byte 3 is not UTF-8"):
        read_yaml(path)


@pytest.mark.parametrize(
    ("wrong", "right", "where", "message"),
    [
        ("expct:", "expect:", "9:7", 'unknown word "expct". Did you mean "expect"?'),
        ("level: MUSTNT", "level: MUST NOT", "2:10", 'MUSTNT is no value for "level". Did you mean "MUST NOT"?'),
        ("- restrat", "- restart", "14:11", 'restrat is no value for "together". Did you mean "restart"?'),
        ("resond:", "respond:", "8:7", 'unknown word "resond". Did you mean "respond"?'),
        ("at_once: 1\n", "at_once: 3\n", "13:20", '"at_once": 1 is less than the minimum of 2.'),
        ("[kill, 5]", "[kill]", "16:22", '5 is no value for "during". Write a mapping (key: value) here.'),
        (
            "turns: serialise",
            "turns: serialize",
            "6:17",
            'serialise is no value for "turns". Did you mean "serialize"?',
        ),
        ("as: bobby", "as: bob", "12:25", 'bobby is no value for "as". Did you mean "bob"?'),
    ],
)
def test_a_typo_is_named_with_its_place_and_the_nearest_word(write, wrong, right, where, message):
    error = complaint(write(ENTRY.replace(right, wrong, 1)))

    assert isinstance(error, SchemaViolationError)
    assert f"slug.yaml:{where}: {message}" in str(error)


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ("  manual: Is it so?\n", '"steps", "manual" do not go together'),
        ("  why: Because.\n", 'the key "why" is said twice'),
        ("- id: SLUG-04\n", 'the entry lacks "level", "text", "why"'),
        ("- 5\n", "5 is no value for the entry"),
    ],
)
def test_what_does_not_fit_together_is_named(write, more, what):
    assert complaint(write(ENTRY + more)).what == what


def test_all_violations_of_a_file_are_told_in_its_order(write):
    path = write(
        ENTRY.replace("level: MUST NOT", "level: MUSTNT").replace("expect:", "expct:").replace("[kill]", "[kil]")
    )
    lines = [int(error.where.rsplit(":", 2)[1]) for error in violations(read_yaml(path), "requirements")]

    assert lines == [2, 9, 16]


def test_an_error_has_three_parts(write):
    error = complaint(write(ENTRY.replace("expect:", "expct:")))

    assert str(error) == f"{error.where}: {error.what}. {error.remedy}"


def test_an_unknown_id_names_the_nearest():
    with pytest.raises(UnknownRequirement, match='Did you mean "HISTORY-05"'):
        load().requirement("HISTRY-05")


def test_the_bundled_spec_is_read_once():
    assert load() is load()


def spec_folder(write, entries, release):
    path = write(entries, "spec/requirements/area.yaml")
    write(release, "spec/releases/1.0.yaml")
    return path.parent.parent


def test_an_id_is_taken_once(write):
    entry = textwrap.dedent(calm_entry("chat: {say: red}"))
    folder = spec_folder(write, entry + entry, 'release: "1.0"\nids: [AREA-01]\n')

    with pytest.raises(
        SpecError, match=r"requirements/area.yaml:10:3: the id AREA-01 is taken by requirements/area.yaml:2:3"
    ):
        load(folder)


def test_a_release_names_requirements_that_exist(write):
    folder = spec_folder(write, calm_entry("chat: {say: red}"), 'release: "1.0"\nids: [AREA-01, AREA-02]\n')

    with pytest.raises(
        SpecError, match=r'releases/1.0.yaml:2:16: no requirement has the id AREA-02. Did you mean "AREA-01"'
    ):
        load(folder)


def test_a_folder_without_requirements_is_no_spec(tmp_path):
    with pytest.raises(UnreadableFileError, match=r"no requirements/\*\.yaml"):
        load(tmp_path)


PROFILE = """\
name: my-gateway 2.1
header: X-My-Session
model: my-model
principals: {alice: $MY_KEY, bob: $MY_SECOND_KEY}
options: {compaction: in-place, turns: reject, tells: header}
offers: [responses, streaming, cors]
limits: {parallel: 8, at_once: 10, turn_seconds: 20}
process: {start: [my-gateway, --port, "{port}"], ready: /health, env: {HOME: /tmp}}
controls: {evict: {http: "POST /test/evict/{response}"}, token: $TOKEN}
probe: http://127.0.0.1:9000/v1
origin: https://chat.example
headers: {X-Tenant: $TENANT}
summary: You are a summarization agent
"""


def test_a_profile_gives_plain_data(write):
    profile = load_checked(write(PROFILE, "profile.yaml"), "profile")

    assert profile["limits"] == {"parallel": 8, "at_once": 10, "turn_seconds": 20}
    assert profile["controls"]["evict"] == {"http": "POST /test/evict/{response}"}


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        ("princpals:", "principals:", 'unknown word "princpals". Did you mean "principals"?'),
        (
            "[responses, steaming",
            "[responses, streaming",
            'steaming is no value for "offers". Did you mean "streaming"?',
        ),
        ("paralel:", "parallel:", 'unknown word "paralel". Did you mean "parallel"?'),
        (
            "compaction: inplace",
            "compaction: in-place",
            'inplace is no value for "compaction". Did you mean "in-place"?',
        ),
        ("evicts:", "evict:", 'unknown word "evicts". Did you mean "evict"?'),
        ("body: session_id\nheader:", "header:", '"header" may not stand here.'),
        ("POST test", "POST /test", 'POST test/evict/{response} is no value for "http".'),
    ],
)
def test_a_typo_in_a_profile_is_named(write, wrong, right, message):
    assert message in str(complaint(write(PROFILE.replace(right, wrong, 1), "profile.yaml"), "profile"))


def test_every_schema_is_a_schema():
    names = sorted(path.name.removesuffix(".schema.json") for path in (BUNDLED / "schemas").glob("*.json"))
    for name in names:
        jsonschema.Draft202012Validator.check_schema(schema(name))

    assert {"profile", "release", "requirements", "results"} <= set(names)

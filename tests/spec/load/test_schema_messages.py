"""Whatever breaks a schema is named with its place and with what was probably meant."""

import jsonschema
import pytest

from continuity_spec import SchemaViolationError, SpecError, load_checked, read_yaml
from continuity_spec.load.loader import BUNDLED
from continuity_spec.load.schema import schema, violations
from continuity_spec.load.yaml_document import DEEPEST


def complaint(path, form="requirements"):
    with pytest.raises(SpecError) as caught:
        load_checked(path, form)
    return caught.value


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        ("expct:", "expect:", '9:7: unknown key "expct". Did you mean "expect"?'),
        (
            "level: MUSTNT",
            "level: MUST NOT",
            '2:10: MUSTNT is not a valid value for "level". Did you mean "MUST NOT"?',
        ),
        ("- restrat", "- restart", '14:11: restrat is not a valid value for "together". Did you mean "restart"?'),
        ("resond:", "respond:", '8:7: unknown key "resond". Did you mean "respond"?'),
        ("at_once: 1\n", "at_once: 3\n", '13:20: "at_once": 1 is less than the minimum of 2.'),
        ("[kill, 5]", "[kill]", '16:22: 5 is not a valid value for "during". Write a mapping (key: value) here.'),
        (
            "turns: serialise",
            "turns: serialize",
            '6:17: serialise is not a valid value for "turns". Did you mean "serialize"?',
        ),
        ("as: bobby", "as: bob", '12:25: bobby is not a valid value for "as". Did you mean "bob"?'),
    ],
)
def test_a_typo_is_named_with_its_place_and_the_nearest_word(write, entry_text, wrong, right, message):
    error = complaint(write(entry_text.replace(right, wrong, 1)))

    assert isinstance(error, SchemaViolationError)
    assert f"slug.yaml:{message}" in str(error)


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ("  manual: Is it so?\n", '"steps", "manual" exclude each other'),
        ("  why: Because.\n", 'duplicate key "why"'),
        ("- id: SLUG-04\n", 'the entry lacks "level", "text", "why"'),
        ("- 5\n", "5 is not a valid value for the entry"),
    ],
)
def test_keys_that_do_not_belong_together_are_named(write, more, what, entry_text):
    assert complaint(write(entry_text + more)).what == what


def test_all_violations_of_a_file_are_listed_in_its_order(write, entry_text):
    path = write(
        entry_text.replace("level: MUST NOT", "level: MUSTNT").replace("expect:", "expct:").replace("[kill]", "[kil]")
    )
    lines = [int(error.where.rsplit(":", 2)[1]) for error in violations(read_yaml(path), "requirements")]

    assert lines == [2, 9, 16]


def test_an_error_has_three_parts(write, entry_text):
    error = complaint(write(entry_text.replace("expect:", "expct:")))

    assert str(error) == f"{error.where}: {error.what}. {error.remedy}"


@pytest.mark.parametrize("form", ["requirements", "profile"])
def test_the_deepest_allowed_file_is_judged_by_its_schema(write, form):
    error = complaint(write("[" * DEEPEST + "]" * DEEPEST), form)

    assert isinstance(error, SchemaViolationError)


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
        ("princpals:", "principals:", 'unknown key "princpals". Did you mean "principals"?'),
        (
            "[responses, steaming",
            "[responses, streaming",
            'steaming is not a valid value for "offers". Did you mean "streaming"?',
        ),
        ("paralel:", "parallel:", 'unknown key "paralel". Did you mean "parallel"?'),
        (
            "compaction: inplace",
            "compaction: in-place",
            'inplace is not a valid value for "compaction". Did you mean "in-place"?',
        ),
        ("evicts:", "evict:", 'unknown key "evicts". Did you mean "evict"?'),
        ("body: session_id\nheader:", "header:", '"header" is not allowed here.'),
        ("POST test", "POST /test", 'POST test/evict/{response} is not a valid value for "http".'),
    ],
)
def test_a_typo_in_a_profile_is_named(write, wrong, right, message):
    assert message in str(complaint(write(PROFILE.replace(right, wrong, 1), "profile.yaml"), "profile"))


def test_every_schema_is_a_schema():
    names = sorted(path.name.removesuffix(".schema.json") for path in (BUNDLED / "schemas").glob("*.json"))
    for name in names:
        jsonschema.Draft202012Validator.check_schema(schema(name))

    assert {"profile", "release", "requirements", "results"} <= set(names)

"""The rules, as pure functions."""

import inspect
import json
from importlib.resources import files

import pytest
import rfc8785

from continuity_server.defects import DEFECTS
from continuity_server.rules import Rules
from continuity_server.rules.compress import Covered, Session
from continuity_server.rules.error import Refusal
from continuity_server.rules.history import PLACEHOLDER
from continuity_server.settings import HEADER, OPTION_VALUES, Options

RULES = Rules(Options())


def user(content):
    return {"role": "user", "content": content}


def system(content, role="system"):
    return {"role": role, "content": content}


def assistant(content):
    return {"role": "assistant", "content": content}


def call(*names):
    calls = [{"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}} for name in names]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(name, content="done"):
    return {"role": "tool", "tool_call_id": name, "content": content}


def derived(*messages, **body):
    return RULES.derived_id({"messages": list(messages), **body})


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([user("Hello")], "api-7c129c8425088ece"),
        ([system("You are a pirate."), user("Hello")], "api-96ab6318772ae8f9"),
        ([user("e\u0301")], "api-81d733847c89c6d4"),
        ([user("  Hello")], "api-e92f5a9ac1b279a0"),
        ([user("Hello"), assistant("Hi"), user("More")], "api-7c129c8425088ece"),
    ],
)
def test_content_v1_gives_the_ids_of_the_vectors(messages, expected):
    assert expected == derived(*messages)


def test_no_system_prompt_equals_the_empty_one():
    assert derived(user("a")) == derived(system(""), user("a"))


def test_a_text_and_one_text_part_are_the_same():
    assert derived(user("a")) == derived(user([{"type": "text", "text": "a"}]))


def test_text_parts_are_joined_by_a_line_feed_and_other_parts_do_not_count():
    parts = [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "x"}},
        {"type": "text", "text": "b"},
    ]

    assert derived(user("a\nb")) == derived(user(parts))


def derived_v2(*messages):
    return Rules(Options(derivation="content-v2")).derived_id({"messages": list(messages)})


def test_content_v1_takes_every_system_message_and_no_developer_message():
    messages = [system("a"), system("x", "developer"), user("c"), system("b"), user("d")]

    assert derived(system("a\nb"), user("c")) == derived(*messages)


def test_content_v2_joins_system_and_developer_messages_in_order():
    assert derived_v2(system("a\nb"), user("c")) == derived_v2(system("a"), system("b", "developer"), user("c"))


def test_in_content_v2_a_later_system_message_does_not_change_the_id():
    assert derived_v2(user("a")) == derived_v2(user("a"), system("b"), user("c"))


def test_content_v1_cannot_tell_where_the_border_was_and_content_v2_can():
    rules = Rules(Options(derivation="content-v2"))
    one, other = ([system("a"), user("b\nc")], [system("a\nb"), user("c")])

    assert derived(*one) == derived(*other)
    assert rules.derived_id({"messages": one}) != rules.derived_id({"messages": other})


@pytest.mark.parametrize("text", ["a", 'quote " \\', "\x00\x1f\x7f\n\t", "\u2028\ue000\U0001f600", "é"])
def test_the_seed_of_content_v2_is_rfc_8785(text):
    assert rfc8785.dumps([text, text]) == RULES.seed_v2(text, text)


@pytest.mark.parametrize("value", ["a\tb", "a\x1fb", "a\x7fb", "a\x85b", "a\udcffb", "x" * 257])
def test_an_id_with_control_characters_or_too_long_is_refused(value):
    with pytest.raises(Refusal):
        RULES.sent_id([(HEADER, value)])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([], None),
        ([(HEADER, "")], None),
        ([(HEADER, "  ")], None),
        ([(HEADER.lower(), " a,b ")], "a,b"),
        ([(HEADER.upper(), "x" * 256)], "x" * 256),
    ],
)
def test_the_header_is_read_in_any_case_and_without_its_blanks(fields, expected):
    assert expected == RULES.sent_id(fields)


def test_two_continuity_headers_are_refused():
    with pytest.raises(Refusal):
        RULES.sent_id([(HEADER, "a"), (HEADER.lower(), "a")])


HEADERS = (HEADER, "X-Session-Id")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([("x-session-id", "b")], "b"),
        ([("X-Session-Id", "b"), (HEADER, "a")], "a"),
        ([(HEADER, " "), ("X-Session-Id", "b")], "b"),
        ([("X-Other", "c")], None),
    ],
)
def test_the_first_declared_header_that_has_a_value_names_the_session(fields, expected):
    assert expected == RULES.sent_id(fields, HEADERS)


def test_a_header_that_is_not_declared_names_no_session():
    assert RULES.sent_id([("X-Session-Id", "b")]) is None


def test_the_new_input_is_the_last_user_message():
    assert [user("b")] == RULES.new_input([user("a"), assistant("x"), user("b")])


def test_the_new_input_is_the_tool_results_that_the_body_ends_with():
    assert [result("1"), result("2")] == RULES.new_input([user("a"), call("1", "2"), result("1"), result("2")])


def test_a_turns_system_prompt_takes_the_place_of_a_stored_one():
    summary = RULES.summary_message("…")

    assert [system("new"), summary, user("a")] == RULES.with_prompts(
        [system("new")], [system("old"), summary, user("a")]
    )


def test_an_abandoned_call_gets_a_placeholder_result():
    assert [call("1"), result("1", PLACEHOLDER), user("b")] == RULES.paired([call("1"), user("b")])


def test_a_result_without_its_call_is_dropped():
    assert [user("a"), call("2"), result("2")] == RULES.paired([user("a"), result("1"), call("2"), result("2")])


def test_results_stand_in_the_order_of_their_calls():
    assert [call("1", "2"), result("1"), result("2")] == RULES.paired([call("1", "2"), result("2"), result("1")])


class Counted(list):
    """Messages that count how many of them are read or copied."""

    work = 0

    def __getitem__(self, key):
        found = super().__getitem__(key)
        self.work += len(found) if isinstance(key, slice) else 1
        return found


@pytest.mark.parametrize(
    "turn",
    [[user("a"), assistant("b")], [call("1"), result("1")], [call("1", "2"), result("2"), result("1")], [result("1")]],
    ids=["words", "a call and its result", "two calls", "results without calls"],
)
def test_ten_times_as_many_messages_are_ten_times_the_work(turn):
    few, many = Counted(turn * 200), Counted(turn * 2000)

    RULES.paired(few)
    RULES.paired(many)

    assert many.work <= 11 * few.work


def vectors(name):
    return json.loads((files("continuity_spec") / "vectors" / f"{name}.json").read_text())


@pytest.mark.parametrize("vector", vectors("tip-resolution"), ids=lambda vector: vector["description"])
def test_the_tip_is_that_of_the_vectors(vector):
    sessions = {
        row["id"]: Session(row["id"], "", row["parent"], row["next"], row["kind"]) for row in vector["sessions"]
    }

    assert vector["tip"] == RULES.tip(sessions[vector["from"]], sessions.get).id


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_derived_ids_are_those_of_the_vectors(version):
    rules = Rules(Options(derivation=f"content-{version}"))
    found = vectors(f"derivation-{version}")

    assert [vector["id"] for vector in found] == [rules.derived_id(vector) for vector in found]


def test_every_text_part_counts_unless_it_is_empty():
    parts = [{"type": "input_text", "text": "a"}, {"type": "text", "text": ""}, {"type": "output_text", "text": "b"}]

    assert derived(user("a\nb")) == derived(user(parts))


@pytest.mark.parametrize(("kind", "follows"), [("compression", True), ("fork", False), ("branch", False)])
def test_only_a_compression_child_is_what_its_parent_went_on_as(kind, follows):
    assert follows is RULES.is_successor(kind)


def test_shared_environments_are_called_default_and_the_others_by_their_chain():
    apart = Rules(Options(environment="per-session")).environment

    assert RULES.environment("alice", "a") == "default"
    assert apart("alice", "a") == apart("alice", "a")
    assert len({apart(owner, root) for owner in ("alice", "bob") for root in ("a", "b")}) == 4


@pytest.mark.parametrize(
    ("stored", "old", "added"),
    [
        ([], ["a", "b"], ["a", "b"]),
        (["a"], ["a", "b"], ["b"]),
        (["a", "b"], ["a", "b"], []),
        (["a", "b", "c"], ["a", "b"], []),
        (["x"], ["a", "b"], []),
        (["x"], [], []),
    ],
)
def test_an_old_row_adds_what_goes_on_from_the_stored_history(stored, old, added):
    taken = RULES.taken_over([user(text) for text in stored], [user(text) for text in old])

    assert taken == [user(text) for text in added]


def test_a_body_that_begins_with_what_was_compressed_is_shortened():
    body = [system("s"), user("a"), assistant("x"), user("b"), assistant("y"), user("c")]
    covered = Covered().and_also(RULES.user_texts(body[:4]))
    summary = RULES.summary_message("…")

    assert [system("s"), summary, user("c")] == RULES.without_covered(body, [summary], covered)


def test_an_edited_body_is_not_shortened():
    covered = Covered().and_also(RULES.user_texts([user("a")]))

    assert RULES.without_covered([user("edited"), user("b")], [RULES.summary_message("…")], covered) is None


def test_minted_ids_differ_in_32_hex_digits():
    ids = {RULES.minted("sess_") for _ in range(1000)}

    assert {37} == {len(ident) for ident in ids}
    assert len(ids) == 1000


def test_the_first_value_of_every_option_is_the_default():
    assert {name: values[0] for name, values in OPTION_VALUES.items()} == Options().as_json()


@pytest.mark.parametrize("defect", DEFECTS.values(), ids=DEFECTS)
def test_a_defect_is_a_few_lines_that_override_methods_of_the_server(defect):
    """Most override one method. Some must remember in one part what they break in another, and some are two of the others at once."""
    own = {cls for part, used in defect.parts.items() for cls in used.__mro__ if cls not in part.__mro__}
    overridden = {
        f"{part.__name__}.{name}"
        for part, used in defect.parts.items()
        for cls in used.__mro__
        if cls not in part.__mro__
        for name in vars(cls)
        if hasattr(part, name) and (name == "__init__" or not name.startswith("__"))
    }

    assert 1 <= len(overridden) <= 8
    assert sum(len(inspect.getsource(cls).splitlines()) for cls in own) <= 50
    assert defect.text.endswith(".")


def test_the_rules_know_neither_http_nor_the_store():
    import subprocess  # noqa: PLC0415 - only here
    import sys  # noqa: PLC0415 - only here

    code = "import continuity_server.rules, sys, json; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)

    assert not {"aiohttp", "sqlite3", "_sqlite3"} & set(loaded)

"""What a model call saw, read as turns."""

import pytest

from continuity_conformance.probe.marks import answer_mark, marks_in, new_mark, saw_list, user_text
from continuity_conformance.probe.view import View, matches, turns, unpaired

RED, BLUE = "aaaa0000", "bbbb0000"
NAMES = {RED: "red", BLUE: "blue"}


def user(mark: str) -> dict[str, object]:
    return {"role": "user", "content": f"[u:{mark}] words"}


def assistant(mark: str, call: int = 1) -> dict[str, object]:
    return {"role": "assistant", "content": f"Noted. [a:{mark}#{call}]"}


def seen(*messages: dict[str, object], failed: frozenset[str] = frozenset()) -> list[str]:
    return turns(View(tuple(marks_in(messages))), NAMES.__getitem__, failed=failed)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ((user(RED),), ["red"]),
        ((user(RED), assistant(RED), user(BLUE)), ["red", "blue"]),
        ((user(RED), assistant(RED), user(RED), assistant(RED), user(BLUE)), ["red", "red", "blue"]),
        ((user(RED), user(BLUE)), ["red (no answer)", "blue"]),
        ((assistant(RED), user(BLUE)), ["answer to red (no question)", "blue"]),
        ((user(RED), assistant(BLUE), user(BLUE)), ["red (no answer)", "answer to blue (no question)", "blue"]),
        (({"role": "user", "content": f"[u:{RED}] [u:{BLUE}]"},), ["red (no answer)", "blue"]),
        (({"role": "assistant", "content": f"[u:{RED}]"}, user(BLUE)), ["red as assistant", "blue"]),
        (
            (user(RED), {"role": "user", "content": f"[a:{RED}#1]"}, user(BLUE)),
            ["red (answer as user)", "blue"],
        ),
    ],
)
def test_anything_but_a_whole_turn_is_named_as_what_it_is(messages, expected):
    assert seen(*messages) == expected


def test_tool_calls_may_stand_between_a_question_and_its_answer():
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "done"}

    assert seen(user(RED), call, result, assistant(RED), user(BLUE)) == ["red", "blue"]


def test_any_assistant_message_completes_a_failed_turn():
    error_text = {"role": "assistant", "content": "The model failed."}

    assert seen(user(RED), error_text, user(BLUE), failed=frozenset({RED})) == ["red", "blue"]
    assert seen(user(RED), error_text, user(BLUE)) == ["red (no answer)", "blue"]


def test_what_stands_inside_a_bracket_is_no_sighting():
    text = f"Noted. [a:{RED}#3 saw u:{BLUE} a:{BLUE}#1 u:{RED}]"
    found = marks_in([{"role": "assistant", "content": text}])

    assert [(sighting.kind, sighting.mark) for sighting in found] == [("answer", RED)]


def test_a_saw_list_reads_like_the_messages_it_lists():
    listed = saw_list(f"s:{RED} u:{RED} a:{RED}#1 sum#4(u:{BLUE},a:{BLUE}#2) u:{BLUE}@assistant")

    assert [sighting.kind for sighting in listed] == ["system", "user", "answer", "summary", "user"]
    assert listed[3].covers == (BLUE,)
    assert listed[4].role == "assistant"


def test_the_answer_to_the_turn_is_preferred_to_a_later_one():
    mark = answer_mark(f"[a:{RED}#1] and [a:{BLUE}#2]", RED)

    assert mark is not None
    assert (mark.mark, mark.call) == (RED, 1)


def test_marks_are_told_apart():
    assert len({new_mark() for _ in range(300_000)}) == 300_000
    assert marks_in([{"role": "user", "content": user_text(RED, "red")}])[0].mark == RED


@pytest.mark.parametrize(
    ("pattern", "labels", "holds"),
    [
        (["red", "blue"], ["red", "blue"], True),
        (["red", "blue"], ["red", "red", "blue"], False),
        (["red", "maybe blue", "green"], ["red", "green"], True),
        (["red", "maybe blue", "green"], ["red", "blue", "green"], True),
        (["red", "maybe blue", "green"], ["red", "blue (no answer)", "green"], False),
        (["each x", "red"], ["x/2", "x/1", "red"], True),
        (["each x", "red"], ["x/1", "red"], False),
        (["each x", "red"], ["x/1", "x/1", "red"], False),
        ([], ["red"], False),
    ],
)
def test_a_pattern_matches_exactly(pattern, labels, holds):
    assert matches(pattern, labels, {"x": ["x/1", "x/2"]}) is holds


@pytest.mark.parametrize(
    ("messages", "troubles"),
    [
        ([{"role": "assistant", "tool_calls": [{"id": "c"}]}, {"role": "tool", "tool_call_id": "c"}], 0),
        ([{"role": "assistant", "tool_calls": [{"id": "c"}]}, {"role": "user"}], 1),
        ([{"role": "assistant", "tool_calls": [{"id": "c"}]}], 1),
        ([{"role": "user"}, {"role": "tool", "tool_call_id": "c"}], 1),
        (
            [
                {"role": "assistant", "tool_calls": [{"id": "c"}]},
                {"role": "user"},
                {"role": "tool", "tool_call_id": "c"},
            ],
            2,
        ),
        ([{"role": "assistant", "tool_calls": [{"id": "c"}]}, {"role": "tool", "tool_call_id": "c"}] * 2, 1),
    ],
)
def test_orphans_of_tool_calls_are_found(messages, troubles):
    assert len(unpaired(messages)) == troubles

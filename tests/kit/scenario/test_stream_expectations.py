"""What holds of a stream as a whole: one id, and one explicit end."""

import asyncio
from types import SimpleNamespace

import pytest

from continuity_conformance.core.failure import Unmet, Untested
from continuity_conformance.http.messages import Answer, Request
from continuity_conformance.scenario.expect import stream as streamed

FINISH = {"id": "c1", "choices": [{"delta": {}, "finish_reason": "stop"}]}
PIECE = {"id": "c1", "choices": [{"delta": {"content": "a"}, "finish_reason": None}]}
OTHER = {**PIECE, "id": "c2"}
ERROR = {"error": {"message": "no", "type": "server_error", "param": None, "code": None}}
PROGRESS = {"tool": "read_file", "status": "running"}
"""An event of the server's own, as some send it between the chunks."""
DONE = "[DONE]"


def event(kind, identity="r1"):
    return {"type": kind, "response": {"id": identity}}


CREATED, COMPLETED, FAILED = (event(f"response.{kind}") for kind in ("created", "completed", "failed"))
FAILURE = {"type": "error", "code": "server_error", "message": "no"}
TEXT = {"type": "response.output_text.delta", "delta": "a"}


def holds(word, verb, events, **sent):
    answer = Answer(200, streamed=True, events=tuple(events))
    exchange = SimpleNamespace(verb=verb, answer=answer, request=Request("POST", "http://x/y", **sent))
    try:
        asyncio.run(streamed.EXPECTATIONS[word](None, exchange, True))
    except Unmet:
        return False
    return True


@pytest.mark.parametrize(
    ("verb", "events", "expected"),
    [
        ("chat", [PIECE, FINISH, DONE], True),
        ("chat", [PIECE, ERROR, DONE], True),
        ("chat", [OTHER, FINISH, DONE], False),
        ("chat", [{"choices": []}, DONE], False),
        ("chat", [PIECE, PROGRESS, FINISH, DONE], True),
        ("chat", [PIECE, {"object": "chat.completion.chunk"}, FINISH, DONE], False),
        ("chat", [PROGRESS, DONE], False),
        ("chat", [], False),
        ("respond", [CREATED, TEXT, COMPLETED], True),
        ("respond", [CREATED, PROGRESS, TEXT, COMPLETED], True),
        ("respond", [CREATED, TEXT, FAILED, DONE], True),
        ("respond", [event("response.created", "r0"), COMPLETED], False),
        ("respond", [CREATED, event("response.failed", "r0")], False),
        ("respond", [TEXT], False),
    ],
)
def test_all_events_name_the_answer_by_one_id(verb, events, expected):
    assert holds("one_id", verb, events) is expected


@pytest.mark.parametrize(
    ("verb", "events", "expected"),
    [
        ("chat", [PIECE, FINISH, DONE], True),
        ("chat", [PIECE, ERROR, DONE], True),
        ("chat", [PIECE, FINISH], False),
        ("chat", [PIECE, DONE], False),
        ("chat", [PIECE, FINISH, DONE, DONE], False),
        ("chat", [PIECE, FINISH, DONE, PIECE], False),
        ("chat", [PIECE, DONE, FINISH], False),
        ("chat", [], False),
        ("respond", [CREATED, TEXT, COMPLETED], True),
        ("respond", [CREATED, FAILED, DONE], True),
        ("respond", [CREATED, TEXT], False),
        ("respond", [CREATED, COMPLETED, TEXT], False),
        ("respond", [CREATED, COMPLETED, COMPLETED], False),
        ("respond", [CREATED, DONE], False),
        ("respond", [CREATED, FAILURE], True),
        ("respond", [CREATED, FAILURE, FAILED], True),
        ("respond", [CREATED, FAILURE, TEXT], False),
        ("respond", [CREATED, COMPLETED, FAILURE], False),
    ],
)
def test_a_stream_ends_once_and_last(verb, events, expected):
    assert holds("ended", verb, events) is expected


@pytest.mark.parametrize(("verb", "events"), [("chat", [ERROR, DONE]), ("respond", [FAILURE])])
def test_a_stream_that_failed_before_it_named_the_answer_proves_nothing(verb, events):
    with pytest.raises(Untested, match="failed before"):
        holds("one_id", verb, events)


@pytest.mark.parametrize(
    ("answer", "failed"),
    [
        (Answer(200, streamed=True, events=(CREATED, COMPLETED)), False),
        (Answer(200, streamed=True, events=(CREATED, FAILED)), True),
        (Answer(200, streamed=True, events=(CREATED, FAILURE)), True),
        (Answer(200, body={"object": "response", "status": "completed"}), False),
        (Answer(200, body={"object": "response", "status": "failed"}, failed=True), True),
    ],
)
def test_a_failure_that_comes_with_200_is_a_failure(answer, failed):
    assert answer.accepted is not failed


@pytest.mark.parametrize("word", ["one_id", "ended"])
def test_a_stream_that_the_client_left_proves_nothing(word):
    with pytest.raises(Untested, match="hung up"):
        holds(word, "chat", [PIECE], hang_up=True)

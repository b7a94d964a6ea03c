"""Where a chat stream tells the new id of its session."""

import pytest

from continuity_conformance.http.messages import Answer
from continuity_conformance.http.reading import announced

FINISH = {"choices": [{"finish_reason": "stop"}]}
TOLD = {"session": {"id": "new"}}


def stream(*events: tuple[str, object]) -> Answer:
    names, data = zip(*events, ("", "[DONE]"), strict=True)
    return Answer(status=200, events=data, event_names=names, streamed=True)


@pytest.mark.parametrize(
    ("answer", "finish_chunk", "event"),
    [
        (stream(("", {**FINISH, **TOLD})), "new", None),
        (stream(("session", TOLD), ("", FINISH)), None, "new"),
        (stream(("session", {"session_id": "new"}), ("", FINISH)), None, "new"),
        (stream(("", FINISH)), None, None),
    ],
    ids=["on the finish chunk", "in a named event", "in a named event, as session_id", "nowhere"],
)
def test_the_declared_way_counts(answer: Answer, finish_chunk: str | None, event: str | None):
    assert (announced(answer, "finish-chunk"), announced(answer, "event")) == (finish_chunk, event)


def test_what_comes_after_the_end_marker_does_not_count():
    late = Answer(status=200, events=(FINISH, "[DONE]", {**FINISH, **TOLD}), event_names=("", "", "x"), streamed=True)

    assert announced(late, "finish-chunk") is announced(late, "event") is None

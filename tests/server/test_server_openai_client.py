"""An unmodified `openai` client, on both endpoints, plain and streamed."""

import openai
import pytest
from reference_process import HEADER


def ask(text):
    return [{"role": "user", "content": text}]


def test_a_plain_chat_completion(client, session):
    raw = client.chat.completions.with_raw_response.create(
        model="m", messages=ask("[u:00000001] hi"), extra_headers={HEADER: session}
    )
    completion = raw.parse()

    assert session == raw.headers[HEADER]
    assert {"id": session, "rotated_from": None, "degraded": False} == completion.session
    assert "saw u:00000001]" in completion.choices[0].message.content
    assert completion.usage.total_tokens > 0


def test_a_streamed_chat_completion_is_stored_like_a_plain_one(client, server, session):
    raw = client.chat.completions.with_raw_response.create(
        model="m",
        messages=ask("hi"),
        stream=True,
        stream_options={"include_usage": True},
        extra_headers={HEADER: session},
    )
    chunks = list(raw.parse())
    *pieces, finish, usage = chunks
    text = "".join(chunk.choices[0].delta.content or "" for chunk in pieces)

    assert session == raw.headers[HEADER]
    assert finish.choices[0].finish_reason == "stop"
    assert session == finish.session["id"]
    assert usage.usage.total_tokens > 0
    assert {chunk.id for chunk in chunks} == {finish.id}
    assert [("user", "hi"), ("assistant", text)] == server.stored(session)


def test_every_chunk_of_a_stream_in_which_the_session_rotates_has_choices(client, server, session):
    server.chat("a", session)
    server.control("compress", session_id=session)
    raw = client.chat.completions.with_raw_response.create(
        model="m", messages=ask("b"), stream=True, extra_headers={HEADER: session}
    )
    chunks = list(raw.parse())
    reasons = [chunk.choices[0].finish_reason for chunk in chunks]
    told = chunks[-1].session

    assert [None] * (len(chunks) - 1) + ["stop"] == reasons
    assert session == raw.headers[HEADER] == told["rotated_from"] != told["id"]
    assert [told["id"]] == server.control("lineage", session_id=session)["children"]


def test_a_streamed_response_in_which_the_session_rotates_tells_the_tip_at_its_end(client, server, session):
    first = client.responses.create(model="m", input="a", conversation=session)
    server.control("compress", session_id=first.session["id"])
    events = list(client.responses.create(model="m", input="b", conversation=session, stream=True))
    told = events[-1].response.session

    assert events[-1].type == "response.completed"
    assert first.session["id"] == told["rotated_from"] != told["id"]
    assert told["id"] == client.responses.create(model="m", input="c", conversation=session).session["id"]


def test_a_plain_response(client, session):
    response = client.responses.create(model="m", input="[u:00000001] hi", conversation=session)

    assert "saw u:00000001]" in response.output_text
    assert session == response.conversation.id
    assert response.output_text == client.responses.retrieve(response.id).output_text


def test_a_streamed_response_ends_with_the_whole_response(client, session):
    with client.responses.stream(model="m", input="hi", conversation=session) as stream:
        events = list(stream)
        final = stream.get_final_response()

    assert list(dict.fromkeys(event.type for event in events)) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert list(range(len(events))) == [event.sequence_number for event in events]
    assert final.id == events[0].response.id
    assert final.session["id"]


def test_a_streamed_response_can_be_continued_from(client):
    first = list(client.responses.create(model="m", input="[u:00000001] a", stream=True))[-1].response
    second = client.responses.create(model="m", input="[u:00000002] b", previous_response_id=first.id)

    assert first.session["id"] == second.session["id"]
    assert "saw u:00000001 a:00000001#" in second.output_text


def test_errors_are_the_clients_own_exceptions(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.responses.create(model="m", input="a", previous_response_id="resp_nobody")

    assert caught.value.code == "previous_response_not_found"


def test_the_models_can_be_listed(client):
    assert [model.id for model in client.models.list()] == ["continuity-agent"]

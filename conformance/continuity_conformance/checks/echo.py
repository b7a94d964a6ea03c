"""Checks of ECHO: the real `openai` client on both endpoints."""

from continuity_conformance.checks.registry import check
from continuity_conformance.checks.support.openai_client import (
    more_fields,
    must_equal,
    real_client,
    user_message,
    user_text,
)
from continuity_conformance.scenario.dialogue import Dialogue


@check
async def openai_client(dialogue: Dialogue) -> None:
    """ECHO-09: an unmodified OpenAI client reads chat completions, plain and streamed, and continues their session."""
    headers, body = _session_fields(dialogue, dialogue.variables.text("$id", "session"))
    async with real_client(dialogue) as client:
        model = dialogue.context.target.profile.model
        completion = await client.chat.completions.create(
            model=model, messages=[user_message(dialogue, "red")], extra_headers=headers, extra_body=body
        )
        stream = await client.chat.completions.create(
            model=model, messages=[user_message(dialogue, "blue")], extra_headers=headers, extra_body=body, stream=True
        )
        choices = [chunk.choices[0] async for chunk in stream]
        must_equal("the kind of object", completion.object, "chat.completion")
        must_equal("the role of the answer", completion.choices[0].message.role, "assistant")
        must_equal("the finish_reason", completion.choices[0].finish_reason, "stop")
        must_equal("the last finish_reason of the stream", choices[-1].finish_reason, "stop")
        must_equal("whether the stream had text", any(choice.delta.content for choice in choices), True)
    await dialogue.do("chat", {"session": "$id", "sees": ["red", "blue", "green"]}, session="$id", say="green")


@check
async def openai_client_responses(dialogue: Dialogue) -> None:
    """ECHO-13: an unmodified OpenAI client reads response objects and the events of a stream.

    It says that responses are to be stored: what a server does without that is SLUG-23's matter.
    """
    async with real_client(dialogue) as client:
        model = dialogue.context.target.profile.model
        more = more_fields(dialogue)
        first = await client.responses.create(
            model=model, input=user_text(dialogue, "red"), store=True, extra_body=more
        )
        stream = await client.responses.create(
            model=model,
            input=user_text(dialogue, "blue"),
            previous_response_id=first.id,
            store=True,
            stream=True,
            extra_body=more,
        )
        events = [event async for event in stream]
        texts = [event.delta for event in events if event.type == "response.output_text.delta"]
        completed = [event.response for event in events if event.type == "response.completed"]
        must_equal("the kind of object", first.object, "response")
        must_equal("whether there is text", bool(first.output_text), True)
        must_equal(
            "the texts of response.completed", [response.output_text for response in completed], ["".join(texts)]
        )
        dialogue.variables.capture("$last", "response", "alice", completed[0].id)
    await dialogue.do("respond", {"sees": ["red", "blue", "green"]}, previous_response_id="$last", say="green")


def _session_fields(dialogue: Dialogue, session: str) -> tuple[dict[str, str], dict[str, object]]:
    """Return the headers and body fields that name a session to this target."""
    profile = dialogue.context.target.profile
    more = more_fields(dialogue)
    return ({}, {**more, profile.body: session}) if profile.body else ({dialogue.context.target.header: session}, more)

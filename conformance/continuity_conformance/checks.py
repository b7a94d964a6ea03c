"""Python checks: what the scenario vocabulary cannot say. Few and short; no `if` and no `try` in them.

A check plays on a dialogue like a scenario does. An entry names it: `check: header_spelling`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from continuity_conformance.dialogue import Dialogue
from continuity_conformance.failure import Unmet
from continuity_conformance.marks import user_text

if TYPE_CHECKING:
    from openai import OpenAI

Check = Callable[[Dialogue], Awaitable[None]]
CHECKS: Final[dict[str, Check]] = {}


def check(function: Check) -> Check:
    """Register a check under its name."""
    CHECKS[function.__name__] = function
    return function


@check
async def header_spelling(dialogue: Dialogue) -> None:
    """ECHO-04: the field name in any case, blanks around the value, and an empty value that equals no header."""
    header = dialogue.stage.target.header
    names = dialogue.names
    session = names.text("$id", "session")
    await dialogue.do("chat", {"session": "$id"}, session="$id", say="red")
    said = ["red"]
    spellings = [(header.lower(), session), (header.upper(), session), (header.swapcase(), session)]
    blanks = [(header, f"   {session}"), (header, f"{session}  \t "), (header, f"\t {session} ")]
    for number, (name, value) in enumerate([*spellings, *blanks]):
        said.append(f"blue {number}")
        await dialogue.do("chat", {"session": "$id", "sees": list(said)}, say=said[-1], headers={name: value})
    await dialogue.do("chat", {"session": "$derived", "sees": ["white"]}, say="white")
    await dialogue.do("chat", {"session": "$derived", "sees": ["white"]}, say="white", headers={header: ""})
    await dialogue.do("chat", {"session": "$derived", "sees": ["white"]}, say="white", headers={header: "  "})


@check
async def openai_client(dialogue: Dialogue) -> None:
    """ECHO-09: an unmodified OpenAI client reads the answers and can go on from them."""
    with client_errors_are_findings():
        await asyncio.to_thread(_converse, dialogue)
    await dialogue.do("chat", {"session": "$id", "sees": ["red", "blue", "green"]}, session="$id", say="green")
    await dialogue.do("chat", {"session": "$other", "sees": ["white"]}, session="$other", say="white")


@contextmanager
def client_errors_are_findings() -> Iterator[None]:
    """Whatever the real client cannot take is a finding about the target."""
    import openai  # noqa: PLC0415 - a second of imports that only this check needs

    try:
        yield
    except (openai.OpenAIError, AttributeError, TypeError, IndexError, ValueError) as trouble:
        raise Unmet(
            "an answer that the openai client reads",
            f"{type(trouble).__name__}: {trouble}",
            expectation="client",
            step="the openai client",
        ) from None


def _converse(dialogue: Dialogue) -> None:
    """A plain turn, a streamed one, and what the client makes of the two."""
    client, header = _client(dialogue), dialogue.stage.target.header
    session = dialogue.names.text("$id", "session")
    model = dialogue.stage.target.profile.model
    plain = client.chat.completions.with_raw_response.create(
        model=model, messages=[{"role": "user", "content": _words(dialogue, "red")}], extra_headers={header: session}
    )
    _must_equal("the session in the header", plain.headers.get(header), session)
    completion = plain.parse()
    _must_equal("the role of the answer", completion.choices[0].message.role, "assistant")
    _must_equal("the kind of object", completion.object, "chat.completion")
    _must_equal("the finish_reason", completion.choices[0].finish_reason, "stop")
    stream = client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": _words(dialogue, "blue")}],
        extra_headers={header: session},
        stream=True,
    )
    choices = [chunk.choices[0] for chunk in stream]
    _must_equal("the last finish_reason of the stream", choices[-1].finish_reason, "stop")
    _must_equal("whether the stream had text", any(choice.delta.content for choice in choices), True)


@check
async def openai_client_responses(dialogue: Dialogue) -> None:
    """ECHO-13: on /v1/responses the client reads response objects and the events of a stream."""
    with client_errors_are_findings():
        await asyncio.to_thread(_respond, dialogue)


def _respond(dialogue: Dialogue) -> None:
    client, model = _client(dialogue), dialogue.stage.target.profile.model
    first = client.responses.create(model=model, input=_words(dialogue, "red"))
    _must_equal("the kind of object", first.object, "response")
    _must_equal("whether there is text", bool(first.output_text), True)
    read_again = client.responses.retrieve(first.id)
    _must_equal("the text of the stored response", read_again.output_text, first.output_text)
    events = list(
        client.responses.create(model=model, input=_words(dialogue, "blue"), previous_response_id=first.id, stream=True)
    )
    texts = [event.delta for event in events if event.type == "response.output_text.delta"]
    ends = [event.response.output_text for event in events if event.type == "response.completed"]
    _must_equal("the text of response.completed", ends, ["".join(texts)])


def _client(dialogue: Dialogue) -> "OpenAI":
    from openai import OpenAI  # noqa: PLC0415 - see client_errors_are_findings

    profile = dialogue.stage.target.profile
    return OpenAI(
        base_url=f"{dialogue.stage.server.url}/v1",
        api_key=profile.principals.get("alice") or "none",
        default_headers=dict(profile.headers),
        max_retries=0,
        timeout=profile.limits.turn_seconds,
    )


def _words(dialogue: Dialogue, label: str) -> str:
    return user_text(dialogue.speech.mark(label), label)


def _must_equal(what: str, actual: object, expected: object) -> None:
    if actual != expected:
        raise Unmet(f"{what}: {expected}", str(actual), expectation="client", step="the openai client")

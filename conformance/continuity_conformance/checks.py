"""Python checks: what the scenario vocabulary cannot say. Few and short; no `if` and no `try` in them.

A check plays on a dialogue like a scenario does. An entry names it: `check: header_spelling`.
"""

import asyncio
import importlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Final

from continuity_conformance import error_checks, isolation_checks, migrate_checks, stream_checks  # noqa: F401 - they register their checks
from continuity_conformance.claims import must_be_true
from continuity_conformance.credentials import standing_fields
from continuity_conformance.dialogue import Dialogue
from continuity_conformance.failure import Inapplicable, Unmet
from continuity_conformance.fuzz import checks as fuzz_checks  # noqa: F401 - likewise
from continuity_conformance.kills import Talker, kill_under_load
from continuity_conformance.registry import (
    CHECKS,
    CONCLUDING,
    COSTLY,
    DISTURBING,
    SEEDED,
    SHARING,
    check,
    concluding,
    disturbing,
)
from continuity_conformance.tls import trust
from continuity_spec import Requirement

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletionUserMessageParam

__all__ = [
    "CHECKS",
    "CONCLUDING",
    "COSTLY",
    "DISTURBING",
    "SEEDED",
    "SHARING",
    "disturbs",
    "load_client",
    "uses_client",
]

_STEP: Final = "the openai client"
_CLIENT_TURNS: Final = 4
_KILLS: Final = 3
_TALKERS: Final = 4


def disturbs(requirement: Requirement) -> bool:
    """Whether others on the same server would notice that a requirement is checked."""
    return requirement.check in DISTURBING or any(scenario.disturbing for scenario in requirement.scenarios)


@check
async def header_spelling(dialogue: Dialogue) -> None:
    """ECHO-04: the field name in any case, blanks around the value, and an empty value that equals no header."""
    header = _header(dialogue)
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
    for number, empty in enumerate(["", "  "]):
        derived = {"session": "$derived", "sees": ["white"]}
        minted = {"session": f"$minted-{number}", "sees": ["white"]}
        expected = {"by derivation": {"content-v1": derived, "content-v2": derived, "none": minted}}
        await dialogue.do("chat", expected, say="white", headers={header: empty})


@check
async def openai_client(dialogue: Dialogue) -> None:
    """ECHO-09: an unmodified OpenAI client reads chat completions, plain and streamed, and goes on in their session."""
    headers, body = _session_in(dialogue, dialogue.names.text("$id", "session"))
    async with real_client(dialogue) as client:
        model = dialogue.stage.target.profile.model
        completion = await client.chat.completions.create(
            model=model, messages=[_user(dialogue, "red")], extra_headers=headers, extra_body=body
        )
        stream = await client.chat.completions.create(
            model=model, messages=[_user(dialogue, "blue")], extra_headers=headers, extra_body=body, stream=True
        )
        choices = [chunk.choices[0] async for chunk in stream]
        _must_equal("the kind of object", completion.object, "chat.completion")
        _must_equal("the role of the answer", completion.choices[0].message.role, "assistant")
        _must_equal("the finish_reason", completion.choices[0].finish_reason, "stop")
        _must_equal("the last finish_reason of the stream", choices[-1].finish_reason, "stop")
        _must_equal("whether the stream had text", any(choice.delta.content for choice in choices), True)
    await dialogue.do("chat", {"session": "$id", "sees": ["red", "blue", "green"]}, session="$id", say="green")


def _header(dialogue: Dialogue) -> str:
    """The continuity header, of a target that has one."""
    if dialogue.stage.target.profile.body:
        raise Inapplicable("the target takes the session from the body")
    return dialogue.stage.target.header


def _session_in(dialogue: Dialogue, session: str) -> tuple[dict[str, str], dict[str, str]]:
    """Headers and body fields that name a session to this target."""
    body = dialogue.stage.target.profile.body
    return ({}, {body: session}) if body else ({dialogue.stage.target.header: session}, {})


@check
async def openai_client_responses(dialogue: Dialogue) -> None:
    """ECHO-13: an unmodified OpenAI client reads response objects, stored ones and the events of a stream."""
    async with real_client(dialogue) as client:
        model = dialogue.stage.target.profile.model
        first = await client.responses.create(model=model, input=_words(dialogue, "red"))
        again = await client.responses.retrieve(first.id)
        stream = await client.responses.create(
            model=model, input=_words(dialogue, "blue"), previous_response_id=first.id, stream=True
        )
        events = [event async for event in stream]
        texts = [event.delta for event in events if event.type == "response.output_text.delta"]
        ends = [event.response for event in events if event.type == "response.completed"]
        _must_equal("the kind of object", first.object, "response")
        _must_equal("whether there is text", bool(first.output_text), True)
        _must_equal("the text of the stored response", again.output_text, first.output_text)
        _must_equal("the texts of response.completed", [end.output_text for end in ends], ["".join(texts)])
        dialogue.names.capture("$last", "response", "alice", ends[0].id)
    await dialogue.do("respond", {"sees": ["red", "blue", "green"]}, previous_response_id="$last", say="green")


@check
async def openai_client_rotation(dialogue: Dialogue) -> None:
    """COMPRESS-08: an unmodified OpenAI client reads the stream in which the session rotates, and finds the new id in it."""
    header = dialogue.stage.target.header
    session = dialogue.names.text("$old", "session")
    await dialogue.do("chat", {"session": "$old"}, session="$old", say="red")
    await dialogue.do("chat", {"session": "$old"}, session="$old", say="blue")
    async with dialogue.compressing("$old", "green"), real_client(dialogue) as client:
        stream = await client.chat.completions.create(
            model=dialogue.stage.target.profile.model,
            messages=[_user(dialogue, "green")],
            extra_headers={header: session},
            stream=True,
        )
        finished = [chunk async for chunk in stream if chunk.choices[0].finish_reason]
        _must_equal("the finish_reasons", [chunk.choices[0].finish_reason for chunk in finished], ["stop"])
        told = (finished[0].model_extra or {}).get("session") or {}
        dialogue.names.capture("$tip", "session", "alice", told.get("id"))
        _must_equal("whether the stream told a new id", told.get("id") not in {None, session}, expected=True)
    expected = {"session": "$tip", "recalls": ["red", "blue", "green", "white"], "summary": True}
    await dialogue.do("chat", expected, session="$tip", say="white")


@disturbing("kill")
@check
async def killed_under_load(dialogue: Dialogue) -> None:
    """DURABLE-04: many kills in a row under load; then everything that was acknowledged is looked for in what the model sees."""
    sessions = [Talker(dialogue, "chat", {"session": f"$id-{k}"}, f"$id-{k}") for k in range(_TALKERS)]
    slugs = [Talker(dialogue, "respond", {"conversation": f"$slug-{k}"}, f"$s-{k}") for k in range(_TALKERS)]
    talkers = [*sessions, *(slugs if dialogue.stage.target.takes_slugs else [])]
    await asyncio.gather(
        *(talker.turn() for talker in talkers)
    )  # a slug that has to be made first is there before the first kill
    await kill_under_load(dialogue, talkers, _KILLS)
    await asyncio.gather(*(talker.check() for talker in talkers))
    await asyncio.gather(*(talker.check() for talker in talkers))


@concluding
@check
async def claims_are_true(dialogue: Dialogue) -> None:
    """DISCOVER-02: what the target says of itself is what the other requirements have shown."""
    await must_be_true(dialogue)


def load_client() -> ModuleType:
    """The real client: a second of imports, for which a thread is there and a target's start is the time."""
    return importlib.import_module("openai")


def uses_client(requirement: Requirement) -> bool:
    return (requirement.check or "").startswith("openai_client")


@asynccontextmanager
async def real_client(dialogue: Dialogue) -> AsyncIterator["AsyncOpenAI"]:
    """The real client, on this target. Whatever it cannot take is a finding about the target."""
    openai = await asyncio.to_thread(load_client)
    profile = dialogue.stage.target.profile
    seconds = profile.limits.turn_seconds
    key = profile.principals.get("alice", "")
    client: AsyncOpenAI = openai.AsyncOpenAI(
        base_url=f"{dialogue.stage.server.url}/v1",
        api_key=key if key and profile.key_field.usual else "none",
        default_headers=dict(standing_fields(profile, "" if profile.key_field.usual else key)),
        max_retries=0,
        # It removes only Authorization on a redirect to another host: a key in another field would be given away.
        http_client=openai.DefaultAsyncHttpxClient(verify=trust(profile.ca), follow_redirects=False),
    )
    try:
        async with client, asyncio.timeout(seconds * _CLIENT_TURNS):
            yield client
    except (
        openai.OpenAIError,
        AttributeError,
        TypeError,
        IndexError,
        ValueError,
        RecursionError,
        TimeoutError,
    ) as trouble:
        actual = f"{type(trouble).__name__}: {trouble}"
        raise Unmet("an answer that the openai client reads", actual, expectation="client", step=_STEP) from None


def _user(dialogue: Dialogue, label: str) -> "ChatCompletionUserMessageParam":
    return {"role": "user", "content": _words(dialogue, label)}


def _words(dialogue: Dialogue, label: str) -> str:
    return dialogue.speech.user_text(label)


def _must_equal(what: str, actual: object, expected: object) -> None:
    if actual != expected:
        raise Unmet(f"{what}: {expected}", str(actual), expectation="client", step=_STEP)

"""The real `openai` client, pointed at the target, for the checks of ECHO and COMPRESS."""

import asyncio
import importlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Final

from continuity_conformance.core.failure import Inapplicable, Unmet
from continuity_conformance.http.tls import trust
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.target.profile import Profile
from continuity_spec import Requirement

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletionUserMessageParam

_BOUNDED: Final = "continuity_conformance.checks.support.bounded_httpx"
_STEP: Final = "the openai client"
_CLIENT_TURNS: Final = 4
"""The client has time for this many turns."""


def load_client() -> ModuleType:
    """Import the `openai` package. It takes a second: a run does it in a thread while the target starts."""
    return importlib.import_module("openai")


def uses_client(requirement: Requirement) -> bool:
    return (requirement.check or "").startswith("openai_client")


@asynccontextmanager
async def real_client(dialogue: Dialogue) -> AsyncIterator["AsyncOpenAI"]:
    """Open the real client on this target. Whatever it cannot read is a failure of the target."""
    openai = await asyncio.to_thread(load_client)
    bounded = await asyncio.to_thread(importlib.import_module, _BOUNDED)
    profile = dialogue.context.target.profile
    if profile.leaves_out("model"):
        raise Inapplicable("the target takes no `model`, which the openai client always sends")
    seconds = profile.limits.turn_seconds
    key = profile.principals.get("alice", "")
    client: AsyncOpenAI = openai.AsyncOpenAI(
        base_url=f"{dialogue.context.server.url}/v1",
        api_key=key if key and profile.key_field.usual else "none",
        # The client keeps connections for seconds, and the target may close one at the moment at which it is used again.
        default_headers={**_headers(profile, "" if profile.key_field.usual else key), "Connection": "close"},
        max_retries=0,
        # On a redirect to another host httpx removes only Authorization: a key in another field would be given away.
        http_client=openai.DefaultAsyncHttpxClient(
            transport=bounded.BoundedHttpx(trust(profile.ca)), follow_redirects=False
        ),
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
    ) as error:
        actual = f"{type(error).__name__}: {error}"
        raise Unmet("an answer that the openai client reads", actual, expectation="client", step=_STEP) from None


def _headers(profile: Profile, key: str) -> dict[str, str]:
    """The fields of every request, with the key where the client does not send it itself."""
    return {**dict(profile.request_headers(key)), **profile.identities.get("alice", {})}


def user_message(dialogue: Dialogue, label: str) -> "ChatCompletionUserMessageParam":
    return {"role": "user", "content": user_text(dialogue, label)}


def user_text(dialogue: Dialogue, label: str) -> str:
    return dialogue.wording.user_text(label)


def more_fields(dialogue: Dialogue) -> dict[str, object]:
    """The fields that this target wants in every body, which a user of the client passes as `extra_body`."""
    return dialogue.context.target.profile.turn_body({"model": dialogue.context.target.profile.model})


def must_equal(what: str, actual: object, expected: object) -> None:
    if actual != expected:
        raise Unmet(f"{what}: {expected}", str(actual), expectation="client", step=_STEP)

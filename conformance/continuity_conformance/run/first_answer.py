"""The first answer of a target: if it answers nothing, or if no turn at all succeeds, there is nothing to examine, and the run ends with one line."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from continuity_conformance.core.errors import ContinuityError, UnreachableError, UsageError
from continuity_conformance.http.brief import short_text
from continuity_conformance.http.client import Transport
from continuity_conformance.http.connect import must_answer
from continuity_conformance.http.messages import TIMED_OUT, Answer, Request
from continuity_conformance.http.tls import trust
from continuity_conformance.target.profile import Profile
from continuity_conformance.target.resolve import ResolvedTarget

CAPABILITIES: Final = "/v1/capabilities"
HEALTH: Final = "/health"
CHEAP: Final = ("/v1/models", HEALTH)
"""What a server answers without running a turn."""
QUICK_SECONDS: Final = 5.0
"""How long the answer to a request that is no turn may take."""

_NOT_READY: Final = frozenset({502, 503, 504})
"""What a proxy answers, and what a server answers, while the server starts."""

Get = Callable[[str], Coroutine[Any, Any, Answer]]

_NO_ENDPOINT: Final = frozenset({404, 405, 501})
_CLIENT_ERROR: Final = 400
_SERVER_ERROR: Final = 500


def reach(target: ResolvedTarget, *, until_ready: bool = False) -> None:
    """Check quickly that the address of a running target takes connections; `until_ready`: that it answers a request too. Raises UnreachableError."""
    if target.url:
        asyncio.run(_reach(target.url, target.profile, until_ready=until_ready))


async def _reach(url: str, profile: Profile, *, until_ready: bool) -> None:
    await must_answer(url, profile.ca)
    if until_ready:
        async with Transport(QUICK_SECONDS, trust(profile.ca)) as transport:
            answer = await transport.send(Request("GET", url + HEALTH, tuple(profile.request_headers(""))))
        if not answer.status or answer.status in _NOT_READY:
            raise UnreachableError("It takes connections, and does not answer yet.", where=url, do="Wait.")


async def first_answer(get: Get, url: str) -> Answer:
    """The answer to GET /v1/capabilities. Raises UnreachableError if there is none in time, and cheap requests are not answered either.

    A turn may take minutes, so a run that waits for the time-out of a turn would take minutes to say that the server hangs.
    """
    capabilities = asyncio.create_task(get(CAPABILITIES))
    await asyncio.wait({capabilities}, timeout=QUICK_SECONDS)
    if not _is_answered(capabilities):
        others = [asyncio.create_task(get(path)) for path in CHEAP]
        answered = await _any_answered([capabilities, *others])
        for task in others if answered else [capabilities, *others]:
            task.cancel()
        if not answered:
            raise silent(url, next((each.result().error for each in others if _is_done(each)), ""))
    return await capabilities


async def _any_answered(tasks: list[asyncio.Task[Answer]]) -> bool:
    try:
        for answer in asyncio.as_completed(tasks, timeout=QUICK_SECONDS):
            if not (await answer).timed_out:
                return True
    except TimeoutError:
        pass
    return False


def _is_done(task: asyncio.Task[Answer]) -> bool:
    return task.done() and not task.cancelled()


def _is_answered(task: asyncio.Task[Answer]) -> bool:
    return _is_done(task) and not task.result().timed_out


def silent(url: str, error: str = "") -> UnreachableError:
    """The error for a server that takes connections and answers nothing."""
    cheap = " and ".join(f"GET {path}" for path in CHEAP)
    return UnreachableError(
        f"The server accepts the connection, but there is {error or f'{TIMED_OUT} in {QUICK_SECONDS:g} s'}, not even to {cheap}.",
        where=url,
        do="Check whether the server hangs, and whether the port is right. If it is still starting: continuity check URL --wait 60.",
    )


def is_no_api(answer: Answer) -> bool:
    """Whether this is the answer of something else than an OpenAI-compatible server: a missing path, a web page or a redirect."""
    redirect = bool(answer.fields("Location")) and 300 <= answer.status < _CLIENT_ERROR  # noqa: PLR2004
    return answer.status in _NO_ENDPOINT or answer.content_type == "text/html" or redirect


def no_turn(url: str, path: str, answer: Answer) -> ContinuityError:
    """The error for a target whose turns all fail in this way."""
    short = short_text(answer)
    if is_no_api(answer):
        what = f"There is no OpenAI-compatible server at this address: POST {path} returns {short}."
        return UnreachableError(what, where=url, do="Give the base address: the part before /v1.")
    if _CLIENT_ERROR <= answer.status < _SERVER_ERROR:
        what = f"The target refuses a plain turn: {short}."
        return UsageError(
            what, where=url + path, do="Say in a profile what it needs, such as `model` or `body_fields`."
        )
    return UnreachableError(
        f"A plain turn fails: {short}.", where=url + path, do="Fix this first: nothing else can be tested."
    )

"""Requests sent from a thread: what makes up data blocks, and the event loop must not.

One request at a time over the run's own transport, so that the profile's limits, its deadline and our User-Agent hold here as everywhere.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from continuity_conformance.http.messages import Answer, Request
from continuity_conformance.scenario.context import Context, Target
from continuity_conformance.scenario.request_builder import base_headers

T = TypeVar("T")
_GRACE_SECONDS: Final = 5.0


class WireCutError(RuntimeError):
    """The run has ended while a check was still sending."""


class Wire:
    """What a check sends by. Lives in its thread; the requests themselves are sent by the run's event loop."""

    def __init__(self, context: Context, loop: asyncio.AbstractEventLoop) -> None:
        self._context = context
        self._loop = loop
        self._cut = threading.Event()
        self.sent = 0
        self.heard: Callable[[Request, Answer], None] = _unheard
        """Told of every request and its answer."""

    @property
    def target(self) -> Target:
        return self._context.target

    @property
    def url(self) -> str:
        return self._context.server.url

    def key_fields(self, principal: str) -> list[tuple[str, str]]:
        """What every request of this principal carries."""
        return base_headers(self._context, principal)

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Iterable[tuple[str, str]] = (),
        principal: str = "alice",
    ) -> Request:
        fields = (*self.key_fields(principal), *headers)
        return Request(method, f"{self.url}{self.target.profile.path(path)}", fields, body)

    def send(self, request: Request) -> Answer:
        if self._cut.is_set():
            raise WireCutError
        self.sent += 1
        sending = asyncio.run_coroutine_threadsafe(self._context.transport.send(request), self._loop)
        answer = sending.result(self.target.profile.limits.turn_seconds + _GRACE_SECONDS)
        self.heard(request, answer)
        return answer

    def problems(self, request: Request, answer: Answer) -> list[str]:
        """Everything in an answer that is not as the OpenAPI document says."""
        headers: dict[str, list[str]] = {}
        for name, value in answer.headers:
            headers.setdefault(name.lower(), []).append(value)
        return self._context.contract.problems(
            request.method,
            self._context.server.document_path(request.path),
            answer.status,
            answer.content_type,
            headers,
            answer.body,
            answer.events,
        )

    def cut(self) -> None:
        """Nothing more is sent: the thread ends at its next request."""
        self._cut.set()


def _unheard(request: Request, answer: Answer) -> None:
    """Nobody listens."""


async def in_thread(context: Context, play: Callable[[Wire], T]) -> T:
    """Play beside the scenarios. A run that ends does not wait for it."""
    wire = Wire(context, asyncio.get_running_loop())
    try:
        return await asyncio.to_thread(play, wire)
    finally:
        wire.cut()

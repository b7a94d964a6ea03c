"""A blocking client for code in a thread: data generators block, and the event loop must not.

It sends requests over the transport of the run, so that the limits of the profile, its deadline and our
User-Agent apply here too.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

from continuity_conformance.core.work import counted_in, current_work
from continuity_conformance.http.messages import Answer, Request
from continuity_conformance.scenario.context import Context, Target
from continuity_conformance.scenario.request_builder import base_headers
from continuity_conformance.target.profile import RESPONSES_PATH

T = TypeVar("T")
_LOOK_SECONDS: Final = 1.0
"""How often a thread that waits looks whether the run is over."""


class _Room(threading.local):
    """Whether this thread keeps room for its responses."""

    is_kept = False


class ClientClosedError(RuntimeError):
    """The run ended while a check was still sending."""


class SyncClient:
    """A client for threads. The event loop of the run sends the requests."""

    def __init__(self, context: Context, loop: asyncio.AbstractEventLoop) -> None:
        self._context = context
        self._loop = loop
        self._closed = threading.Event()
        self._room = _Room()
        self.work = current_work()
        self.requests_sent = 0
        self.on_answer: Callable[[Request, Answer], None] = _ignore
        """Called with every request and its answer."""

    @property
    def target(self) -> Target:
        return self._context.target

    @property
    def url(self) -> str:
        return self._context.server.url

    def base_headers(self, principal: str) -> list[tuple[str, str]]:
        """Return the headers of every request of this principal."""
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
        fields = (*self.base_headers(principal), *headers)
        profile = self.target.profile
        sent = profile.body_of(method, path, body)
        return Request(method, f"{self.url}{profile.path(path)}", fields, sent)

    @property
    def at_once(self) -> int:
        """How many requests may be sent at the same time. Some name the same session, which a target may refuse while it is busy."""
        busy_is_refused = self.target.options["turns"] == "reject"
        return 1 if busy_is_refused else min(self._context.at_once, self.target.profile.limits.at_once)

    def send(self, request: Request) -> Answer:
        return self.send_all([request])[0]

    def send_all(self, requests: Sequence[Request]) -> list[Answer]:
        """Send requests that do not depend on each other, so many at a time as the target may get (`at_once`). The answers are in their order."""
        if self._closed.is_set():
            raise ClientClosedError
        self.requests_sent += len(requests)
        sending = asyncio.run_coroutine_threadsafe(self._send_all(requests, room=not self._room.is_kept), self._loop)
        answers = self._result(sending)
        for request, answer in zip(requests, answers, strict=True):
            self.on_answer(request, answer)
        return answers

    def _result(self, pending: "Future[T]") -> T:
        """Wait for the event loop, which has its own deadline for each request. A loop that has ended answers nothing."""
        while not self._closed.is_set():
            with suppress(TimeoutError):
                return pending.result(_LOOK_SECONDS)
        raise ClientClosedError

    async def _send_all(self, requests: Sequence[Request], *, room: bool) -> list[Answer]:
        places = asyncio.Semaphore(self.at_once)

        async def send(request: Request) -> Answer:
            stores = room and request.method == "POST" and request.path.endswith(RESPONSES_PATH)
            async with places, self._context.cache.lease(int(stores)):
                return await self._context.transport.send_repeatable(request)

        with counted_in(self.work):  # a thread does not say whose task it works for
            return list(await asyncio.gather(*map(send, requests)))

    @contextmanager
    def room(self, responses: int) -> Iterator[None]:
        """Keep room for so many responses in the target's cache, so that none that the block stores is evicted inside it. An inner block adds nothing."""
        if self._room.is_kept or not responses:
            yield
            return
        cache = self._context.cache
        lease = self._result(asyncio.run_coroutine_threadsafe(cache.take(responses), self._loop))
        self._room.is_kept = True
        try:
            yield
        finally:
            self._room.is_kept = False
            self._loop.call_soon_threadsafe(cache.release, lease)

    def contract_problems(self, request: Request, answer: Answer) -> list[str]:
        """Return everything in an answer that differs from the OpenAPI document."""
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

    def close(self) -> None:
        """Refuse further requests: the thread ends at its next one."""
        self._closed.set()


def _ignore(request: Request, answer: Answer) -> None:
    """Do nothing with an answer."""


async def run_in_thread(context: Context, function: Callable[[SyncClient], T]) -> T:
    """Run a blocking function with a client, beside the scenarios. If this is cancelled, it does not wait for the thread."""
    client = SyncClient(context, asyncio.get_running_loop())
    try:
        return await asyncio.to_thread(function, client)
    finally:
        client.close()

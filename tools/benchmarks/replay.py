"""Records the requests of a run of the suite, and sends them again with nothing around them: no judging, no evidence, no waiting.

Each chain of requests (a scenario, a sequence, a generated request) is sent in its order, and as many chains at once as a run plays. Ids that the server made are replaced by
those that it makes now. Requests that break the store are left out, and nothing is restarted or killed.
"""

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from unittest.mock import patch

from continuity_conformance.http.client import Transport
from continuity_conformance.http.messages import Answer, Request, origin
from continuity_conformance.probe.server import Probe, listening
from continuity_conformance.run import scheduler
from continuity_conformance.run.session import Run
from continuity_conformance.target.profile import Profile
from continuity_conformance.target.resolve import resolve
from continuity_conformance.target.server import start_server
from continuity_spec import Requirement

_MADE: Final = re.compile(r"(?:resp|sess|conv)_[0-9a-f]{32}")
_LEFT_OUT: Final = "/conformance/v1/fault"


@dataclass(frozen=True, slots=True)
class Sent:
    """One request, and the ids that its answer told."""

    request: Request
    told: list[str]
    seconds: float


@dataclass(slots=True)
class Recorder:
    """The requests of one run, by the task that sent them."""

    chains: dict[object, list[Sent]] = field(default_factory=dict)

    @property
    def requests(self) -> int:
        return sum(map(len, self.chains.values()))

    @property
    def longest_chain(self) -> float:
        """The seconds that the longest chain waited for its answers, one after the other."""
        return max((sum(sent.seconds for sent in chain) for chain in self.chains.values()), default=0.0)

    def transport(self) -> type[Transport]:
        chains = self.chains

        class Recording(Transport):
            async def send(self, request: Request) -> Answer:
                answer = await super().send(request)
                sent = Sent(request, told(answer), answer.seconds)
                chains.setdefault(asyncio.current_task(), []).append(sent)
                return answer

        return Recording


def told(answer: Answer) -> list[str]:
    headers = " ".join(value for _, value in answer.headers)
    return _MADE.findall(f"{headers} {answer.text}")


def recorded(profile: Profile, requirements: Sequence[Requirement]) -> Recorder:
    """Play requirements on a server with this profile."""
    recorder = Recorder()
    with (
        patch.object(scheduler, "Transport", recorder.transport()),
        Run(resolve(None, profile), requirements) as run,
    ):
        for each in requirements:
            run.result(each.id)
    return recorder


def replayed(profile: Profile, recorder: Recorder) -> float:
    """Send everything again to a new server with the same keys. Return the seconds from the first request to the last answer."""
    return asyncio.run(_replay(profile, [chain for chain in recorder.chains.values() if chain]))


async def _replay(profile: Profile, chains: Sequence[Sequence[Sent]]) -> float:
    async with listening(Probe(profile.summary)) as probe, Transport(profile.limits.turn_seconds) as transport:
        server = await start_server(profile, probe)
        try:
            player = _Player(transport, server.url, asyncio.Semaphore(profile.limits.parallel))
            began = time.monotonic()
            await asyncio.gather(*map(player.send_chain, chains))
            return time.monotonic() - began
        finally:
            await server.stop()


@dataclass(slots=True)
class _Player:
    transport: Transport
    url: str
    places: asyncio.Semaphore
    now: dict[str, str] = field(default_factory=dict)
    """The id that the server makes now, by the one that it made then."""

    async def send_chain(self, chain: Sequence[Sent]) -> None:
        async with self.places:
            for sent in chain:
                if sent.request.path != _LEFT_OUT:
                    answer = await self.transport.send(self._request(sent.request))
                    self.now.update(zip(sent.told, told(answer), strict=False))

    def _request(self, request: Request) -> Request:
        url = self._today(request.url.replace(origin(request.url), origin(self.url)))
        headers = tuple((name, self._today(value)) for name, value in request.headers)
        body: Any = request.data
        if body is not None and b"_" in body:
            body = self._today(body.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        fields = (*headers, *_type_of(request))
        return replace(request, url=url, headers=fields, body=body, hang_up=False, on_answer=None)

    def _today(self, text: str) -> str:
        return _MADE.sub(lambda made: self.now.get(made[0], made[0]), text) if "_" in text else text


def _type_of(request: Request) -> list[tuple[str, str]]:
    """The content type that a body of JSON gets by itself, and one of bytes does not."""
    is_json = request.body is not None and not isinstance(request.body, bytes)
    named = any(name.lower() == "content-type" for name, _ in request.headers)
    return [("Content-Type", "application/json")] if is_json and not named else []

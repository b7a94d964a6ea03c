"""A rehearsal: the whole visit, on a server that is not there. Nothing is sent, and what would be is kept.

That server is as contrary as one can be, so that all is asked that could be: it lists no models, says that it tells no session and then tells another one in
nearly each answer, takes turns of anybody, shows no session, and lets them be deleted at one place only. A visit to any other server sends a part of that.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from continuity_conformance.doctor.recorder import Recorder
from continuity_conformance.http.messages import Answer, Request, dig
from continuity_conformance.target.profile import DEFAULT_HEADER, Profile

_SAID: Final = "Understood."
_CAPABILITIES: Final = {"continuity": {"options": {"tells": "nothing"}}}
_SILENT: Final = frozenset({1, 3})
"""The turns that tell no session: the first of each opening, which would end there if it told another one."""
_OURS: Final = re.compile(r"continuity-[\w-]+")


class Rehearsal(Recorder):
    """Answers as the contrary server does. `place`: where its sessions can be deleted."""

    def __init__(self, profile: Profile, place: str) -> None:
        super().__init__(profile.limits.turn_seconds)
        self._header = profile.header or DEFAULT_HEADER
        self._place = place
        self._turns = count(1)

    async def send(self, request: Request) -> Answer:
        self.sent += 1
        answer = self._answer(request)
        self.exchanges.append((request, replace(answer, text=json.dumps(answer.body))))
        return self.exchanges[-1][1]

    def _answer(self, request: Request) -> Answer:
        match request.method, request.path.rpartition("/v1")[2]:
            case "GET", "/capabilities":
                return Answer(200, body=_CAPABILITIES)
            case "POST", "/chat/completions":
                told = self._told(next(self._turns))
                return _streamed(told) if dig(request.body, "stream") else Answer(200, told, body=_completion())
            case "POST", "/responses":
                told = self._told(next(self._turns))
                return Answer(200, told, body={"id": "resp_continuity-1", "output": []})
            case "DELETE", _ if f"{self._place}/" in request.path:
                return Answer(200, body={"deleted": True})
            case _:
                return Answer(404, body={"error": {}})

    def _told(self, turn: int) -> tuple[tuple[str, str], ...]:
        return ((self._header, f"continuity-its-own-{turn}"),) if turn not in _SILENT else ()


@dataclass(frozen=True, slots=True)
class Planned:
    """A request that may be sent, and how often at most; ids and words are those of its first time."""

    request: Request
    times: int


def planned(visits: Sequence[Sequence[Request]]) -> list[Planned]:
    """All that these visits send, each kind of request once, in the order of the visits."""
    counted = [Counter(map(_shape, visit)) for visit in visits]
    first = {_shape(request): request for visit in reversed(visits) for request in reversed(visit)}
    ordered = dict.fromkeys(shape for visit in visits for shape in map(_shape, visit))
    return [Planned(first[shape], max(times[shape] for times in counted)) for shape in ordered]


def _shape(request: Request) -> tuple[object, ...]:
    """A request without the ids and the words that are made up for it."""
    fields = tuple((name, _OURS.sub("", value)) for name, value in request.headers)
    body = request.body if isinstance(request.body, dict) else {}
    return request.method, _OURS.sub("", request.url), fields, tuple(body), body.get("stream")


def _completion() -> dict[str, object]:
    choice = {"index": 0, "message": {"role": "assistant", "content": _SAID}, "finish_reason": "stop"}
    return {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice]}


def _streamed(told: tuple[tuple[str, str], ...]) -> Answer:
    chunk = {"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {"content": _SAID}, "finish_reason": "stop"}]}
    return Answer(200, told, events=(chunk, "[DONE]"), streamed=True)

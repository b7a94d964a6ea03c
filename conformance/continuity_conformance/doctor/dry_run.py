"""A dry run: a survey of an imagined server. It sends nothing, and records the requests that a real survey could send.

The imagined server makes the doctor try everything: it lists no models, declares that it does not report sessions and then reports a new one in nearly
every answer, accepts turns without a key, shows no session, and deletes sessions at one path only. Any real server gets some of these requests.
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

_ANSWER_TEXT: Final = "Understood."
_CAPABILITIES: Final = {"continuity": {"options": {"tells": "nothing"}}}
_TURNS_WITHOUT_SESSION: Final = frozenset({1, 3})
"""The first turn of each opening dialogue. If it reported another session, the dialogue would end there."""
_OWN_ID: Final = re.compile(r"continuity-[\w-]+")


class DryRun(Recorder):
    """A transport that answers as the imagined server does. `sessions_path`: where that server deletes sessions; empty: it has no chat, and no sessions."""

    def __init__(self, profile: Profile, sessions_path: str) -> None:
        super().__init__(profile.limits.turn_seconds)
        self._header = profile.header or DEFAULT_HEADER
        self._sessions_path = sessions_path
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
            case "POST", "/chat/completions" if self._sessions_path:
                headers = self._headers(next(self._turns))
                return _stream(headers) if dig(request.body, "stream") else Answer(200, headers, body=_completion())
            case "POST", "/responses":
                turn = next(self._turns)
                body = {"id": f"resp_continuity-{turn}", "output": [{"type": "message", "content": []}]}
                return Answer(200, self._headers(turn), body=body)
            case "DELETE", path if path.startswith("/responses/"):
                return Answer(200, body={"deleted": True})
            case "DELETE", _ if self._sessions_path and f"{self._sessions_path}/" in request.path:
                return Answer(200, body={"deleted": True})
            case _:
                return Answer(404, body={"error": {}})

    def _headers(self, turn: int) -> tuple[tuple[str, str], ...]:
        return ((self._header, f"continuity-its-own-{turn}"),) if turn not in _TURNS_WITHOUT_SESSION else ()


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """A request that may be sent, and how often at most. Its ids and texts are those of the first time."""

    request: Request
    times: int


def plan(dry_runs: Sequence[Sequence[Request]]) -> list[PlannedRequest]:
    """The requests of all these dry runs, each kind of request once, in order."""
    counters = [Counter(map(_shape, requests)) for requests in dry_runs]
    first = {_shape(request): request for requests in reversed(dry_runs) for request in reversed(requests)}
    shapes = dict.fromkeys(shape for requests in dry_runs for shape in map(_shape, requests))
    return [PlannedRequest(first[shape], max(times[shape] for times in counters)) for shape in shapes]


def _shape(request: Request) -> tuple[object, ...]:
    """A request without its random ids and texts."""
    fields = tuple((name, _OWN_ID.sub("", value)) for name, value in request.headers)
    body = request.body if isinstance(request.body, dict) else {}
    return request.method, _OWN_ID.sub("", request.url), fields, tuple(body), body.get("stream")


def _completion() -> dict[str, object]:
    choice = {"index": 0, "message": {"role": "assistant", "content": _ANSWER_TEXT}, "finish_reason": "stop"}
    return {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice]}


def _stream(headers: tuple[tuple[str, str], ...]) -> Answer:
    chunk = {"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {"content": _ANSWER_TEXT}, "finish_reason": "stop"}]}
    return Answer(200, headers, events=(chunk, "[DONE]"), streamed=True)

"""What the doctor sends, kept: what was made by it is known from there. A rehearsal keeps the same requests, and sends none of them."""

import json
from dataclasses import replace
from typing import Final

from continuity_conformance.transport import Answer, Request, Transport, dig

_SAID: Final = "Understood."


class Recorder(Transport):
    """A transport that remembers each exchange."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type] # as Transport takes them
        self.exchanges: list[tuple[Request, Answer]] = []

    async def send(self, request: Request) -> Answer:
        answer = await super().send(request)
        self.exchanges.append((request, answer))
        return answer


class Rehearsal(Recorder):
    """Sends nothing: every request is answered as by a server that has everything and declares none of it, so that all is asked that could be."""

    header = ""

    async def send(self, request: Request) -> Answer:
        self.sent += 1
        answer = self._answer(request)
        self.exchanges.append((request, replace(answer, text=json.dumps(answer.body))))
        return self.exchanges[-1][1]

    def _answer(self, request: Request) -> Answer:
        match request.method, request.path.rpartition("/v1")[2]:
            case "GET", "/models":
                return Answer(200, body={"object": "list", "data": [{"id": dig(request.body, "model") or "default"}]})
            case "POST", "/chat/completions":
                told = tuple(pair for pair in request.headers if pair[0] == self.header)
                return _streamed(told) if dig(request.body, "stream") else Answer(200, told, body=_completion())
            case "POST", "/responses":
                return Answer(200, body={"id": "resp_continuity-1", "output": []})
            case "GET", path if path.startswith("/sessions/"):
                return Answer(200, body={"id": path.removeprefix("/sessions/")})
            case "DELETE", _:
                return Answer(200, body={"deleted": True})
            case _:
                return Answer(404, body={"error": {}})


def _completion() -> dict[str, object]:
    choice = {"index": 0, "message": {"role": "assistant", "content": _SAID}, "finish_reason": "stop"}
    return {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice]}


def _streamed(told: tuple[tuple[str, str], ...]) -> Answer:
    chunk = {"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {"content": _SAID}, "finish_reason": "stop"}]}
    return Answer(200, told, events=(chunk, "[DONE]"), streamed=True)

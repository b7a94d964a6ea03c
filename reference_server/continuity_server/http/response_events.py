"""A streamed response: the events of /v1/responses, in the order in which an OpenAI client expects them."""

import itertools
from typing import Any

from continuity_server.http.sse import EventStream
from continuity_server.http.turn_stream import TurnStream
from continuity_server.rules import Rules
from continuity_server.rules.echo import SessionInfo
from continuity_server.rules.error import Refusal
from continuity_server.turn.types import Outcome, TurnRequest


class ResponseEvents(TurnStream):
    """STREAM-01: one response id in all events; STREAM-02: it ends with response.completed, response.incomplete or response.failed."""

    def __init__(self, stream: EventStream, rules: Rules, request: TurnRequest, frame: dict[str, Any]) -> None:
        super().__init__(stream, rules, request)
        self._frame = frame
        self._numbers = itertools.count()
        self._sent = ""

    async def text(self, session_info: SessionInfo, delta: str) -> None:
        await self._open(session_info)
        if not self._sent:
            await self._begin_message()
        self._sent += delta
        await self._send("response.output_text.delta", **self._part_place(), delta=delta, logprobs=[])

    async def _begin(self) -> None:
        await self._send("response.created", response=self._frame)
        await self._send("response.in_progress", response=self._frame)

    async def _begin_message(self) -> None:
        item = {"id": self._message_id, "type": "message", "role": "assistant", "status": "in_progress", "content": []}
        await self._send("response.output_item.added", output_index=0, item=item)
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        await self._send("response.content_part.added", **self._part_place(), part=part)

    async def _finish(self, outcome: Outcome) -> None:
        body = outcome.body
        if outcome.replayed:
            self._frame = {**self._frame, "id": body["id"], "created_at": body["created_at"]}
        await self._open(outcome.session_info)
        for index, item in enumerate(body["output"]):
            await (self._end_message(item) if item["type"] == "message" else self._call(index, item))
        await self._complete(body)

    async def _complete(self, body: dict[str, Any]) -> None:
        """COMPRESS-07: the response object of the last event carries `session`. Its status is completed, or incomplete where the model was cut off."""
        await self._send(f"response.{body['status']}", response=body)

    async def _end_message(self, item: dict[str, Any]) -> None:
        part = item["content"][0]
        if not self._sent:
            await self._begin_message()
        if rest := part["text"][len(self._sent) :]:
            await self._send("response.output_text.delta", **self._part_place(), delta=rest, logprobs=[])
        await self._send("response.output_text.done", **self._part_place(), text=part["text"], logprobs=[])
        await self._send("response.content_part.done", **self._part_place(), part=part)
        await self._send("response.output_item.done", output_index=0, item=item)

    async def _call(self, index: int, item: dict[str, Any]) -> None:
        place = {"output_index": index, "item_id": item["id"]}
        await self._send(
            "response.output_item.added", output_index=index, item={**item, "arguments": "", "status": "in_progress"}
        )
        await self._send("response.function_call_arguments.delta", **place, delta=item["arguments"])
        await self._send(
            "response.function_call_arguments.done", **place, name=item["name"], arguments=item["arguments"]
        )
        await self._send("response.output_item.done", output_index=index, item=item)

    async def _fail(self, refusal: Refusal) -> None:
        """After the first event a failure is `response.failed`."""
        error = {"code": "server_error", "message": self._rules.error_body(refusal)["error"]["message"]}
        await self._send("response.failed", response={**self._frame, "status": "failed", "error": error})

    @property
    def _message_id(self) -> str:
        return "msg_" + str(self._frame["id"]).removeprefix("resp_")

    def _part_place(self) -> dict[str, Any]:
        return {"output_index": 0, "content_index": 0, "item_id": self._message_id}

    async def _send(self, event: str, **data: Any) -> None:
        await self._stream.send({"type": event, "sequence_number": next(self._numbers), **data}, event)

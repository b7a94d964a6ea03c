"""Defects of STREAM: events that disagree, streams that stop instead of ending, and turns that leave less than they would unstreamed."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from continuity_server.defects.registry import defect
from continuity_server.defects.support.locked import LockingAgent
from continuity_server.http.chat import ChatStream
from continuity_server.http.response_events import ResponseEvents
from continuity_server.model.http_model import HttpModel
from continuity_server.model.types import Call, ModelFailedError, Reply
from continuity_server.rules import Rules
from continuity_server.rules.error import Refusal
from continuity_server.rules.messages import Message, Messages
from continuity_server.rules.stream import DONE, Event
from continuity_server.turn.agent import Agent
from continuity_server.turn.tool_loop import ToolLoop
from continuity_server.turn.types import Turn, TurnOutput

Chunk = Mapping[str, Any]


@defect("chunk-ids-differ", "Every chunk of a streamed chat completion has an id of its own.", "adk-python#4216")
class ChunkIdsDiffer(ChatStream):
    def _framed(self, choices: list[dict[str, Any]], **more: object) -> dict[str, Any]:
        return {**super()._framed(choices, **more), "id": self._rules.minted("chatcmpl-")}


class _RenamedResponse(ResponseEvents):
    """Events that name another response than the one that is stored."""

    def name(self, ident: str, event: str) -> str:
        raise NotImplementedError

    async def _send(self, event: str, **data: Any) -> None:
        if response := data.get("response"):
            data["response"] = {**response, "id": self.name(response["id"], event)}
        await super()._send(event, **data)


@defect(
    "created-id-differs-from-completed",
    "A streamed response is completed under another id than it was created under.",
    "litellm PR 37956",
)
class CreatedIdDiffersFromCompleted(_RenamedResponse):
    def name(self, ident: str, event: str) -> str:
        return f"{ident}-created" if event == "response.created" else ident


@defect(
    "failed-id-differs-from-created", "A stream that fails in the middle ends under another id than it began under."
)
class FailedIdDiffersFromCreated(_RenamedResponse):
    def name(self, ident: str, event: str) -> str:
        return self._rules.minted("resp_") if event == "response.failed" else ident


@defect(
    "streamed-response-id-unknown",
    "A streamed response is stored under another id than its events say.",
    "litellm PR 37956",
)
class StreamedResponseIdUnknown(_RenamedResponse):
    def name(self, ident: str, event: str) -> str:
        return f"{ident}-streamed" if event.startswith("response.") else ident


@defect("stream-without-done", "A streamed chat completion stops without [DONE].")
class StreamWithoutDone(Rules):
    def chat_ending(self, finish: Chunk, session: Chunk, usage: Chunk | None) -> list[Event | None]:
        return super().chat_ending(finish, session, usage)[:-1]


@defect("stream-ends-twice", "A streamed chat completion has its end marker twice.")
class StreamEndsTwice(Rules):
    def chat_ending(self, finish: Chunk, session: Chunk, usage: Chunk | None) -> list[Event | None]:
        return [*super().chat_ending(finish, session, usage), DONE]


@defect("events-of-calls-not-counted", "The events of a tool call have the number of the event before them.")
class EventsOfCallsNotCounted(ResponseEvents):
    async def _call(self, index: int, item: dict[str, Any]) -> None:
        numbers, self._numbers = self._numbers, itertools.repeat(0)  # type: ignore[assignment] # that is the defect
        await super()._call(index, item)
        self._numbers = numbers


@defect("response-stream-without-completed", "A streamed response stops after its last piece of text.")
class ResponseStreamWithoutCompleted(ResponseEvents):
    async def _complete(self, body: dict[str, Any]) -> None:
        pass


@defect(
    "failed-response-stream-completes",
    "A streamed response whose model breaks off ends as response.completed.",
)
class FailedResponseStreamCompletes(ResponseEvents):
    async def _fail(self, refusal: Refusal) -> None:  # noqa: ARG002 - that is the defect
        part = {"type": "output_text", "text": self._sent, "annotations": [], "logprobs": []}
        item = {
            "id": self._message_id,
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
        await self._complete({**self._frame, "status": "completed", "output": [item]})


class _FailedEventsJustStop(ResponseEvents):
    async def _fail(self, refusal: Refusal) -> None:
        pass


@defect(
    "failed-stream-just-stops",
    "A stream whose model breaks off in the middle stops without a word.",
    also=(_FailedEventsJustStop,),
)
class FailedStreamJustStops(ChatStream):
    async def _fail(self, refusal: Refusal) -> None:
        pass


@defect("hang-up-leaves-half-turn", "A client that hangs up leaves its question without an answer.")
class HangUpLeavesHalfTurn(Agent):
    async def _ask_model(self, turn: Turn) -> TurnOutput:
        output = await super()._ask_model(turn)
        return replace(output, messages=()) if turn.sink.gone else output


@defect("hang-up-leaves-cut-answer", "A client that hangs up leaves half a turn, such as a cut answer.")
class HangUpLeavesCutAnswer(Agent):
    async def _ask_model(self, turn: Turn) -> TurnOutput:
        output = await super()._ask_model(turn)
        return (
            replace(
                output,
                messages=tuple({**message, "content": str(message["content"])[:5]} for message in output.messages),
            )
            if turn.sink.gone
            else output
        )


@defect("hang-up-locks-session", "A session whose client hung up is busy for good.")
class HangUpLocksSession(LockingAgent):
    def _keeps_session(self, turn: Turn) -> bool:
        return turn.sink.gone


@defect("streamed-answer-not-stored", "Of a streamed turn only the question is stored.")
class StreamedAnswerNotStored(Agent):
    async def _ask_model(self, turn: Turn) -> TurnOutput:
        output = await super()._ask_model(turn)
        return replace(output, messages=()) if turn.request.stream else output


@defect("streamed-answer-stored-in-pieces", "A streamed answer is stored as several messages.")
class StreamedAnswerStoredInPieces(Agent):
    async def _ask_model(self, turn: Turn) -> TurnOutput:
        output = await super()._ask_model(turn)
        return (
            replace(output, messages=(*output.messages[:-1], *_pieces(output.messages[-1])))
            if turn.request.stream
            else output
        )


def _pieces(message: Message) -> Messages:
    text = str(message.get("content") or "")
    cut = len(text) - 1
    return [{**message, "content": text[:cut]}, {**message, "content": text[cut:]}] if text else [message]


class _StreamedMessagesStoredOtherwise(Agent):
    """Each message of a streamed turn is stored in another way than that of a plain one."""

    def stored(self, message: Message) -> Message:
        raise NotImplementedError

    async def _ask_model(self, turn: Turn) -> TurnOutput:
        output = await super()._ask_model(turn)
        return replace(output, messages=tuple(map(self.stored, output.messages))) if turn.request.stream else output


@defect("streamed-calls-lose-arguments", "Tool calls of a streamed turn are stored without their arguments.")
class StreamedCallsLoseArguments(_StreamedMessagesStoredOtherwise):
    def stored(self, message: Message) -> Message:
        calls = [
            {**call, "function": {**call["function"], "arguments": "{}"}} for call in message.get("tool_calls") or ()
        ]
        return {**message, "tool_calls": calls} if calls else message


@defect(
    "streamed-letters-dropped",
    "A streamed answer is not stored like a plain one, such as without letters outside ASCII.",
)
class StreamedLettersDropped(_StreamedMessagesStoredOtherwise):
    def stored(self, message: Message) -> Message:
        text = str(message.get("content") or "")
        return {**message, "content": text.encode("ascii", "ignore").decode()} if text else message


@defect("streamed-calls-of-one-tool-merged", "Of several calls of one tool in a stream, only the last is stored.")
class StreamedCallsOfOneToolMerged(_StreamedMessagesStoredOtherwise):
    def stored(self, message: Message) -> Message:
        calls = {call["function"]["name"]: call for call in message.get("tool_calls") or ()}
        return {**message, "tool_calls": list(calls.values())} if calls else message


@defect(
    "streamed-arguments-go-to-last-call",
    "Of several tool calls that a model streams side by side, the last gets the arguments of all.",
)
class StreamedArgumentsGoToLastCall(_StreamedMessagesStoredOtherwise):
    def stored(self, message: Message) -> Message:
        calls = message.get("tool_calls") or []
        mixed = "".join(call["function"]["arguments"] for call in calls)
        texts = [*("" for _ in calls[1:]), mixed]
        changed = [
            {**call, "function": {**call["function"], "arguments": text}}
            for call, text in zip(calls, texts, strict=False)
        ]
        return {**message, "tool_calls": changed} if calls else message


@defect(
    "streamed-lines-split-at-u2028", "U+2028 ends a line of the model's stream, and what comes before it there is lost."
)
class StreamedLinesSplitAtU2028(_StreamedMessagesStoredOtherwise):
    def stored(self, message: Message) -> Message:
        text = str(message.get("content") or "")
        return {**message, "content": text.rpartition("\u2028")[2]} if text else message


@defect("streamed-text-beside-call-dropped", "What the model says beside a tool call is not stored if it was streamed.")
class StreamedTextBesideCallDropped(_StreamedMessagesStoredOtherwise):
    def stored(self, message: Message) -> Message:
        return {**message, "content": None} if message.get("tool_calls") else message


@defect("done-counts-as-finish", "A stream of the model without a finish_reason counts as a whole answer.")
class DoneCountsAsFinish(HttpModel):
    def _chunk(self, data: bytes) -> dict[str, Any]:
        return {"choices": [{"finish_reason": "stop"}]} if data == b"[DONE]" else super()._chunk(data)


@defect(
    "retry-keeps-pieces-of-broken-stream",
    "A stream of the model that breaks off is asked for again, and the pieces of the first try stay in the answer.",
)
class RetryKeepsPiecesOfBrokenStream(ToolLoop):
    async def _ask(self, turn: Turn, messages: Messages) -> Reply:
        pieces: list[str] = []

        async def keep(delta: str) -> None:
            pieces.append(delta)
            await turn.sink.text(turn.session_info, delta)

        call = Call(turn.request.model, messages, self._tools(turn.request), turn.request.sampling)
        if not turn.request.stream:
            return await super()._ask(turn, messages)
        try:
            reply = await self._model.ask(call, keep)
        except ModelFailedError:
            reply = await self._model.ask(call, keep)
        return replace(reply, text="".join(pieces))


class _UnheardStream(ChatStream):
    """A stream that notes whether the client was gone at its first event."""

    unheard = False

    async def _begin(self) -> None:
        await super()._begin()
        self.unheard = self.gone


@defect(
    "early-hang-up-locks-session",
    "A session whose client hung up before the first event of a stream is busy for good.",
    also=(_UnheardStream,),
)
class EarlyHangUpLocksSession(LockingAgent):
    def _keeps_session(self, turn: Turn) -> bool:
        return isinstance(turn.sink, _UnheardStream) and turn.sink.unheard

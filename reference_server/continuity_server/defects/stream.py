"""Defects of STREAM: events that disagree, streams that stop instead of ending, and turns that leave less than they would unstreamed."""

from collections.abc import Callable, Sequence

from continuity_server.defects.registry import defect
from continuity_server.rules import Rules
from continuity_server.rules.compress import P
from continuity_server.rules.echo import Event
from continuity_server.rules.error import Case, Refusal
from continuity_server.rules.messages import Message, Messages
from continuity_server.rules.stream import E
from continuity_server.settings import Options


@defect("chunk-ids-differ", "Every chunk of a streamed chat completion has an id of its own.", "adk-python#4216")
class ChunkIdsDiffer(Rules):
    def stream_id(self, ident: str, event: str) -> str:
        return self.minted("chatcmpl-") if event == "chunk" else ident


@defect(
    "created-id-differs-from-completed",
    "A streamed response is completed under another id than it was created under.",
    "litellm PR 37956",
)
class CreatedIdDiffersFromCompleted(Rules):
    def stream_id(self, ident: str, event: str) -> str:
        return f"{ident}-created" if event == "response.created" else ident


@defect(
    "failed-id-differs-from-created", "A stream that fails in the middle ends under another id than it began under."
)
class FailedIdDiffersFromCreated(Rules):
    def stream_id(self, ident: str, event: str) -> str:
        return self.minted("resp_") if event == "response.failed" else ident


@defect(
    "streamed-response-id-unknown",
    "A streamed response is stored under another id than its events say.",
    "litellm PR 37956",
)
class StreamedResponseIdUnknown(Rules):
    def stream_id(self, ident: str, event: str) -> str:
        return f"{ident}-streamed" if event.startswith("response.") else ident


@defect("stream-without-done", "A streamed chat completion stops without [DONE].")
class StreamWithoutDone(Rules):
    def chat_end(self, events: Sequence[Event]) -> list[Event | None]:
        return list(events)


@defect("stream-ends-twice", "A streamed chat completion has its end marker twice.")
class StreamEndsTwice(Rules):
    def chat_end(self, events: Sequence[Event]) -> list[Event | None]:
        return [*events, None, None]


@defect("response-stream-without-completed", "A streamed response stops after its last piece of text.")
class ResponseStreamWithoutCompleted(Rules):
    def response_end(self, event: E) -> list[E]:  # noqa: ARG002 - that is the defect
        return []


@defect("failed-stream-just-stops", "A stream whose model breaks off in the middle stops without a word.")
class FailedStreamJustStops(Rules):
    def failed_end(self, events: Sequence[E]) -> list[E]:  # noqa: ARG002 - that is the defect
        return []


@defect("hang-up-leaves-half-turn", "A client that hangs up leaves its question without an answer.")
class HangUpLeavesHalfTurn(Rules):
    def stored_answer(self, session: str, made: Sequence[Message], *, streamed: bool, gone: bool) -> Messages:
        return [] if gone else super().stored_answer(session, made, streamed=streamed, gone=gone)


@defect("hang-up-leaves-cut-answer", "A client that hangs up leaves as much of the answer as it got.")
class HangUpLeavesCutAnswer(Rules):
    def stored_answer(self, session: str, made: Sequence[Message], *, streamed: bool, gone: bool) -> Messages:
        whole = super().stored_answer(session, made, streamed=streamed, gone=gone)
        return [{**message, "content": str(message["content"])[:5]} for message in whole] if gone else whole


@defect("hang-up-locks-session", "A session whose client hung up is busy for good.")
class HangUpLocksSession(Rules):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._locked: set[str] = set()

    def stored_answer(self, session: str, made: Sequence[Message], *, streamed: bool, gone: bool) -> Messages:
        self._locked |= {session} if gone else set()
        return super().stored_answer(session, made, streamed=streamed, gone=gone)

    def landing(self, looked: P, look_again: Callable[[], P]) -> P:
        place = super().landing(looked, look_again)
        if getattr(place, "tip", "") in self._locked:
            raise Refusal(Case.SESSION_BUSY, "Another turn of this session is running.", retry_after=1)
        return place


@defect("streamed-answer-not-stored", "Of a streamed turn only the question is stored.")
class StreamedAnswerNotStored(Rules):
    def stored_answer(self, session: str, made: Sequence[Message], *, streamed: bool, gone: bool) -> Messages:
        return [] if streamed else super().stored_answer(session, made, streamed=streamed, gone=gone)


@defect("streamed-answer-stored-in-pieces", "A streamed answer is stored as several messages.")
class StreamedAnswerStoredInPieces(Rules):
    def stored_answer(self, session: str, made: Sequence[Message], *, streamed: bool, gone: bool) -> Messages:
        whole = super().stored_answer(session, made, streamed=streamed, gone=gone)
        return [*whole[:-1], *_pieces(whole[-1])] if streamed else whole


def _pieces(message: Message) -> Messages:
    text = str(message.get("content") or "")
    cut = len(text) - 1
    return [{**message, "content": text[:cut]}, {**message, "content": text[cut:]}] if text else [message]


@defect("streamed-calls-lose-arguments", "Tool calls of a streamed turn are stored without their arguments.")
class StreamedCallsLoseArguments(Rules):
    def stored_answer(self, session: str, made: Sequence[Message], *, streamed: bool, gone: bool) -> Messages:
        whole = super().stored_answer(session, made, streamed=streamed, gone=gone)
        return [_without_arguments(message) for message in whole] if streamed else whole


def _without_arguments(message: Message) -> Message:
    calls = [{**call, "function": {**call["function"], "arguments": "{}"}} for call in message.get("tool_calls") or ()]
    return {**message, "tool_calls": calls} if calls else message

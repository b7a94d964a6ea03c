"""Defects of ECHO: an id that the client is not told, is told wrongly, or cannot use."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from aiohttp import web

from continuity_server.defects.registry import defect
from continuity_server.http.chat import ChatHandler, ChatStream
from continuity_server.http.middleware import Handler, Middleware
from continuity_server.http.response_events import ResponseEvents
from continuity_server.http.responses import ResponsesHandler
from continuity_server.rules import Rules
from continuity_server.rules.echo import DEGRADED_HEADER, Fields, SessionInfo, Surface
from continuity_server.rules.stream import Event
from continuity_server.settings import HEADER
from continuity_server.turn.history import HistoryReader
from continuity_server.turn.resolve import Resolver
from continuity_server.turn.types import Destination, Outcome, TurnInput, TurnRequest

Chunk = Mapping[str, Any]


def _without_headers(response: web.Response) -> web.Response:
    for name in (HEADER, DEGRADED_HEADER):
        response.headers.popall(name, None)
    return response


class QuietChatStream(ChatStream):
    """A chat stream without the continuity header."""

    async def _open(self, session_info: SessionInfo) -> None:  # noqa: ARG002 - that is the defect
        if not self._stream.opened:
            await self._stream.open([])
            await self._begin()


@defect(
    "header-missing",
    "Chat completions are answered without the continuity header.",
    "openclaw 2026.9.6",
    also=(QuietChatStream,),
)
class HeaderMissing(ChatHandler):
    def _answered(self, outcome: Outcome) -> web.Response:
        return _without_headers(super()._answered(outcome))


@defect("header-twice", "The continuity header is sent twice.", "agentchattr#80")
class HeaderTwice(Rules):
    def answer_fields(self, session_info: SessionInfo) -> Fields:
        return super().answer_fields(session_info) * 2


@defect("header-empty", "The continuity header is sent with an empty value.")
class HeaderEmpty(Rules):
    def header_fields(self, session: str) -> Fields:  # noqa: ARG002 - that is the defect
        return [(HEADER, "")]


@defect("echo-new-id", "Every answer tells a new id, whatever the client sent.", "hermes-webui#4535")
class EchoNewId(Rules):
    def echoed_id(self, sent: str | None, root: str, tip: str) -> str:  # noqa: ARG002 - that is the defect
        return self.minted("sess_")


@defect("echo-lowercases-id", "The id is told in lower case.", "openclaw 2026.9.6")
class EchoLowercasesId(Rules):
    def echoed_id(self, sent: str | None, root: str, tip: str) -> str:
        return super().echoed_id(sent, root, tip).lower()


@defect("stream-without-header", "A streamed chat completion has no continuity header.")
class StreamWithoutHeader(QuietChatStream):
    """Plain answers have it."""


@defect(
    "header-name-case-sensitive",
    "The continuity header counts only when its name is written as the server writes it.",
    "fast-mcp#132",
)
class HeaderNameCaseSensitive(Rules):
    def is_header(self, name: str, header: str) -> bool:
        return name == header


@defect(
    "empty-header-is-an-id",
    "An empty continuity header names the session with the empty id, which all who send one share.",
)
class EmptyHeaderIsAnId(Rules):
    def named_id(self, value: str) -> str | None:
        return self.checked_id(value) or "empty"


@defect("responses-without-header", "A plain response has no continuity header.")
class ResponsesWithoutHeader(ResponsesHandler):
    def _answered(self, outcome: Outcome) -> web.Response:
        return _without_headers(super()._answered(outcome))


@defect("responses-stream-without-header", "A streamed response has no continuity header.")
class ResponsesStreamWithoutHeader(ResponseEvents):
    async def _open(self, session_info: SessionInfo) -> None:  # noqa: ARG002 - that is the defect
        if not self._stream.opened:
            await self._stream.open([])
            await self._begin()


@defect(
    "echoed-id-does-not-continue",
    "The id that is told for a session the client did not name is not the one that it is stored under.",
    "litellm PR 37956",
)
class EchoedIdDoesNotContinue(Rules):
    def echoed_id(self, sent: str | None, root: str, tip: str) -> str:
        own = super().echoed_id(sent, root, tip)
        return f"{own}-public" if own.startswith(("api-", "api2-", "sess_")) and not own.endswith("-public") else own


def _without_header(response: web.StreamResponse, name: str) -> web.StreamResponse:
    """Take the continuity header out of a list of header names."""
    if name in response.headers:
        response.headers[name] = ", ".join(one for one in response.headers[name].split(", ") if one != HEADER)
    return response


@defect(
    "cors-header-not-allowed",
    "The preflight does not allow the continuity header.",
    "modelcontextprotocol/python-sdk#1135",
)
class CorsHeaderNotAllowed(Middleware):
    @web.middleware
    async def cors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        return _without_header(await super().cors(request, handler), "Access-Control-Allow-Headers")


@defect(
    "cors-header-not-exposed", "Browsers may not read the continuity header.", "modelcontextprotocol/python-sdk#1135"
)
class CorsHeaderNotExposed(Middleware):
    async def headers(self, request: web.Request, response: web.StreamResponse) -> None:
        await super().headers(request, response)
        _without_header(response, "Access-Control-Expose-Headers")


@defect("error-without-header", "An error after the session was resolved does not tell it.")
class ErrorWithoutHeader(Rules):
    def error_fields(self, session: str | None) -> Fields:  # noqa: ARG002 - that is the defect
        return []


@defect("completion-without-object", "A chat completion does not say what kind of object it is.")
class CompletionWithoutObject(Rules):
    def with_session(self, body: Mapping[str, Any], session_info: SessionInfo) -> dict[str, Any]:
        whole = super().with_session(body, session_info)
        return {name: value for name, value in whole.items() if name != "object" or value != "chat.completion"}


@defect("stream-chunk-without-choices", "A stream tells the session in a chunk of its own, which has no choices.")
class StreamChunkWithoutChoices(Rules):
    def chat_ending(self, finish: Chunk, session: Chunk, usage: Chunk | None) -> list[Event | None]:
        bare = {name: value for name, value in finish.items() if name != "choices"}
        return [(None, {**bare, **session}), *super().chat_ending(finish, {}, usage)]


@defect("response-without-output", "A response has an empty output; its text is nowhere.")
class ResponseWithoutOutput(Rules):
    def with_session(self, body: Mapping[str, Any], session_info: SessionInfo) -> dict[str, Any]:
        whole = super().with_session(body, session_info)
        return {**whole, "output": []} if body["object"] == "response" else whole


@defect(
    "session-in-a-named-event",
    "A stream tells the session in an event of its own, which clients read as a chunk without choices.",
)
class SessionInANamedEvent(Rules):
    def chat_ending(self, finish: Chunk, session: Chunk, usage: Chunk | None) -> list[Event | None]:
        return [("hermes.session", dict(session)), *super().chat_ending(finish, {}, usage)]


@defect("body-session-differs-from-header", "The body names another session than the header.")
class BodySessionDiffersFromHeader(Rules):
    def session_object(self, session_info: SessionInfo) -> dict[str, Any]:
        return {**super().session_object(session_info), "id": f"{session_info.id}-body"}


@defect("responses-ignore-header", "A continuity header on /v1/responses is silently ignored.")
class ResponsesIgnoreHeader(Resolver):
    def destination(self, request: TurnRequest) -> Destination:
        chat = request.surface is Surface.CHAT
        return super().destination(request if chat else replace(request, header=None))


@defect("second-header-ignored", "Of several declared continuity headers only the first one counts.")
class SecondHeaderIgnored(Rules):
    def sent_id(self, fields: Iterable[tuple[str, str]], headers: Sequence[str] = (HEADER,)) -> str | None:
        return super().sent_id(fields, headers[:1])


@defect("second-header-wins", "Of several continuity headers the last one in the declared order counts.")
class SecondHeaderWins(Rules):
    def sent_id(self, fields: Iterable[tuple[str, str]], headers: Sequence[str] = (HEADER,)) -> str | None:
        return super().sent_id(fields, headers[::-1])


@defect("two-headers-make-one-id", "The values of several continuity headers are joined to one id.")
class TwoHeadersMakeOneId(Rules):
    def sent_id(self, fields: Iterable[tuple[str, str]], headers: Sequence[str] = (HEADER,)) -> str | None:
        sent = list(fields)
        named = [session for header in headers if (session := self.id_in(sent, header)) is not None]
        return "-".join(named) or None


def _user(request: TurnRequest) -> str | None:
    user = request.body.get("user")
    return f"user-{user}" if user else None


@defect(
    "user-chooses-session", "A request that names no session goes to the session of its `user`.", "openclaw PR 126616"
)
class UserChoosesSession(Resolver):
    def destination(self, request: TurnRequest) -> Destination:
        named = (request.header, request.slug, request.previous) != (None, None, None)
        return super().destination(request if named else replace(request, header=_user(request)))


@defect("user-beats-header", "Where a request has a `user`, the continuity header does not count.")
class UserBeatsHeader(Resolver):
    def destination(self, request: TurnRequest) -> Destination:
        return super().destination(replace(request, header=request.header and (_user(request) or request.header)))


@defect("user-splits-session", "A session that the client names is another one for another `user`.")
class UserSplitsSession(Resolver):
    def destination(self, request: TurnRequest) -> Destination:
        parts = [part for part in (request.header, _user(request)) if part]
        return super().destination(replace(request, header="-".join(parts) if request.header else None))


class _ChainAndHeader(HistoryReader):
    """Shows the model the history of the header's session and that of the previous response."""

    def read(self, request: TurnRequest, destination: Destination) -> TurnInput:
        own = super().read(request, destination)
        found = self._store.response(request.principal, request.previous) if request.previous else None
        if request.header is None or found is None or found.session is None:
            return own
        chain = self._store.messages(request.principal, found.session, found.epoch, found.upto)
        return replace(own, before=[*chain, *own.before])


@defect(
    "header-and-chain-mixed",
    "A header beside a previous_response_id of another session: the model sees the history of both.",
    also=(_ChainAndHeader,),
)
class HeaderAndChainMixed(Resolver):
    def destination(self, request: TurnRequest) -> Destination:
        both = request.header is not None and request.previous is not None
        return super().destination(replace(request, previous=None) if both else request)

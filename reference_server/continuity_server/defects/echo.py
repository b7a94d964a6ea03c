"""Defects of ECHO: an id that the client is not told, is told wrongly, or cannot use."""

from collections.abc import Mapping
from typing import Any

from continuity_server.defects.registry import defect
from continuity_server.rules import Rules
from continuity_server.rules.echo import Event, Fields, SessionInfo, Surface
from continuity_server.settings import HEADER


@defect("header-missing", "Chat completions are answered without the continuity header.", "openclaw 2026.9.6")
class HeaderMissing(Rules):
    def answer_fields(self, told: SessionInfo, surface: Surface, *, streamed: bool) -> Fields:
        return [] if surface is Surface.CHAT else super().answer_fields(told, surface, streamed=streamed)


@defect("header-twice", "The continuity header is sent twice.", "agentchattr#80")
class HeaderTwice(Rules):
    def answer_fields(self, told: SessionInfo, surface: Surface, *, streamed: bool) -> Fields:
        return super().answer_fields(told, surface, streamed=streamed) * 2


@defect("header-empty", "The continuity header is sent with an empty value.")
class HeaderEmpty(Rules):
    def header_fields(self, session: str) -> Fields:  # noqa: ARG002 - that is the defect
        return [(HEADER, "")]


@defect("echo-new-id", "Every answer tells a new id, whatever the client sent.", "hermes-webui#4535")
class EchoNewId(Rules):
    def told_id(self, sent: str | None, root: str, tip: str) -> str:  # noqa: ARG002 - that is the defect
        return self.minted("sess_")


@defect("echo-lowercases-id", "The id is told in lower case.", "openclaw 2026.9.6")
class EchoLowercasesId(Rules):
    def told_id(self, sent: str | None, root: str, tip: str) -> str:
        return super().told_id(sent, root, tip).lower()


@defect("stream-without-header", "A streamed chat completion has no continuity header.")
class StreamWithoutHeader(Rules):
    def answer_fields(self, told: SessionInfo, surface: Surface, *, streamed: bool) -> Fields:
        quiet = streamed and surface is Surface.CHAT
        return [] if quiet else super().answer_fields(told, surface, streamed=streamed)


@defect(
    "header-name-case-sensitive",
    "The continuity header counts only when its name is written as the server writes it.",
    "fast-mcp#132",
)
class HeaderNameCaseSensitive(Rules):
    def is_continuity_header(self, name: str) -> bool:
        return name == HEADER


@defect(
    "empty-header-is-an-id",
    "An empty continuity header names the session with the empty id, which all who send one share.",
)
class EmptyHeaderIsAnId(Rules):
    def named_id(self, value: str) -> str | None:
        return self.checked_id(value) or "empty"


@defect("responses-without-header", "A plain response has no continuity header.")
class ResponsesWithoutHeader(Rules):
    def answer_fields(self, told: SessionInfo, surface: Surface, *, streamed: bool) -> Fields:
        quiet = surface is Surface.RESPONSES and not streamed
        return [] if quiet else super().answer_fields(told, surface, streamed=streamed)


@defect("responses-stream-without-header", "A streamed response has no continuity header.")
class ResponsesStreamWithoutHeader(Rules):
    def answer_fields(self, told: SessionInfo, surface: Surface, *, streamed: bool) -> Fields:
        quiet = surface is Surface.RESPONSES and streamed
        return [] if quiet else super().answer_fields(told, surface, streamed=streamed)


@defect(
    "echoed-id-does-not-continue",
    "The id that is told for a session the client did not name is not the one that it is stored under.",
    "litellm PR 37956",
)
class EchoedIdDoesNotContinue(Rules):
    def told_id(self, sent: str | None, root: str, tip: str) -> str:
        told = super().told_id(sent, root, tip)
        return (
            f"{told}-public" if told.startswith(("api-", "api2-", "sess_")) and not told.endswith("-public") else told
        )


@defect(
    "cors-header-not-allowed",
    "The preflight does not allow the continuity header.",
    "modelcontextprotocol/python-sdk#1135",
)
class CorsHeaderNotAllowed(Rules):
    def cors_allowed(self) -> tuple[str, ...]:
        return tuple(name for name in super().cors_allowed() if name != HEADER)


@defect(
    "cors-header-not-exposed", "Browsers may not read the continuity header.", "modelcontextprotocol/python-sdk#1135"
)
class CorsHeaderNotExposed(Rules):
    def cors_exposed(self) -> tuple[str, ...]:
        return tuple(name for name in super().cors_exposed() if name != HEADER)


@defect("error-without-header", "An error after the session was resolved does not tell it.")
class ErrorWithoutHeader(Rules):
    def error_fields(self, session: str | None) -> Fields:  # noqa: ARG002 - that is the defect
        return []


@defect("completion-without-object", "A chat completion does not say what kind of object it is.")
class CompletionWithoutObject(Rules):
    def with_session(self, body: Mapping[str, Any], told: SessionInfo) -> dict[str, Any]:
        whole = super().with_session(body, told)
        return {name: value for name, value in whole.items() if name != "object" or value != "chat.completion"}


@defect("stream-chunk-without-choices", "A stream tells the session in a chunk of its own, which has no choices.")
class StreamChunkWithoutChoices(Rules):
    def last_chunks(self, finish: Mapping[str, Any], session: Mapping[str, Any]) -> list[Event]:
        bare = {name: value for name, value in finish.items() if name != "choices"}
        return [(None, {**bare, **session}), (None, dict(finish))]


@defect("response-without-output", "A response has an empty output; its text is nowhere.")
class ResponseWithoutOutput(Rules):
    def with_session(self, body: Mapping[str, Any], told: SessionInfo) -> dict[str, Any]:
        whole = super().with_session(body, told)
        return {**whole, "output": []} if body["object"] == "response" else whole


@defect(
    "session-in-a-named-event",
    "A stream tells the session in an event of its own, which clients read as a chunk without choices.",
)
class SessionInANamedEvent(Rules):
    def last_chunks(self, finish: Mapping[str, Any], session: Mapping[str, Any]) -> list[Event]:
        return [("hermes.session", dict(session)), (None, dict(finish))]


@defect("body-session-differs-from-header", "The body names another session than the header.")
class BodySessionDiffersFromHeader(Rules):
    def session_object(self, told: SessionInfo) -> dict[str, Any]:
        return {**super().session_object(told), "id": f"{told.id}-body"}


@defect("responses-ignore-header", "A continuity header on /v1/responses is silently ignored.")
class ResponsesIgnoreHeader(Rules):
    def header_on_responses(self, sent: str | None) -> str | None:  # noqa: ARG002 - that is the defect
        return None

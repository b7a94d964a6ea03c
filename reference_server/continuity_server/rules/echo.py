"""ECHO: how a client names a session, and how it learns the id. Pure: header fields in, header fields out."""

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from continuity_server.rules.error import Case, Refusal
from continuity_server.settings import HEADER, Options

DEGRADED_HEADER: Final = "X-Session-Degraded"
MAX_ID: Final = 256

Fields = list[tuple[str, str]]
Event = tuple[str | None, dict[str, Any]]


def is_id(text: str) -> bool:
    """Tell whether a client could send this as the id of a session."""
    return text.strip(" \t") == text != "" and len(text) <= MAX_ID and not _has_control_characters(text)


def _has_control_characters(text: str) -> bool:
    """Control characters, and the lone surrogates that bytes become which are no UTF-8."""
    return any(unicodedata.category(character) in {"Cc", "Cs"} for character in text)


class Surface(Enum):
    """The two endpoints that take turns."""

    CHAT = "chat"
    RESPONSES = "responses"


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What an answer tells of its session."""

    id: str
    rotated_from: str | None = None
    degraded: bool = False


class EchoRules:
    """The rules about the continuity header and about `session` in bodies."""

    options: Options

    def sent_id(self, fields: Iterable[tuple[str, str]]) -> str | None:
        """ISOLATE-03: two continuity headers are refused; else the one, checked."""
        values = [value for name, value in fields if self.is_continuity_header(name)]
        if len(values) > 1:
            raise Refusal(Case.INVALID_SESSION_ID, f"The request has {len(values)} {HEADER} headers. Send one.")
        return self.named_id(values[0].strip(" \t")) if values else None

    def is_continuity_header(self, name: str) -> bool:
        """ECHO-04: the field name in any case."""
        return name.lower() == HEADER.lower()

    def named_id(self, value: str) -> str | None:
        """ECHO-04: an empty value equals no header."""
        return self.checked_id(value) if value else None

    def checked_id(self, value: str) -> str:
        """ISOLATE-03, -04: control characters, bytes that are no UTF-8 and more than 256 characters are refused."""
        if len(value) > MAX_ID:
            raise Refusal(
                Case.INVALID_SESSION_ID, f"The id in {HEADER} has more than {MAX_ID} characters. Send a shorter one."
            )
        if _has_control_characters(value):
            raise Refusal(
                Case.INVALID_SESSION_ID, f"The id in {HEADER} has a control character or is no UTF-8. Send text."
            )
        return value

    def chosen_id(self, sent: str | None, derived: Callable[[], str | None]) -> tuple[str | None, bool]:
        """DERIVE-14: a client-named id wins over derivation. The second value says whether the id was derived."""
        return (sent, False) if sent is not None else (derived(), True)

    def header_on_responses(self, sent: str | None) -> str | None:
        """ECHO-11: a continuity header on /v1/responses is honoured, never silently ignored."""
        return sent

    def told_id(self, sent: str | None, root: str, tip: str) -> str:
        """ECHO-02, COMPRESS-01: the tip (echo=tip), or the id by which the client knows the chain (echo=alias)."""
        if self.options.echo == "tip":
            return tip
        return sent if sent is not None else root

    def answer_fields(self, told: SessionInfo, surface: Surface, *, streamed: bool) -> Fields:  # noqa: ARG002 - on every surface, streamed or not
        """ECHO-01, -03, -05: the continuity header, exactly once; HISTORY-06: a degraded answer says so."""
        return [*self.header_fields(told.id), *self.degraded_fields(told)]

    def header_fields(self, session: str) -> Fields:
        return [(HEADER, session)] if self.options.tells == "header" else []

    def degraded_fields(self, told: SessionInfo) -> Fields:
        return [(DEGRADED_HEADER, "history-unavailable")] if told.degraded else []

    def error_fields(self, session: str | None) -> Fields:
        """ECHO-08: an error after the session was resolved carries the header."""
        return self.header_fields(session) if session is not None else []

    def session_object(self, told: SessionInfo) -> dict[str, Any]:
        """ECHO-10: body and header name the same session."""
        return {"id": told.id, "rotated_from": told.rotated_from, "degraded": told.degraded}

    def with_session(self, body: Mapping[str, Any], told: SessionInfo) -> dict[str, Any]:
        """ECHO-09: the OpenAI object as it is, and `session` beside its own fields."""
        told_too = {"session": self.session_object(told)} if self.options.tells == "header" else {}
        return {**body, **told_too}

    def last_chunks(self, finish: Mapping[str, Any], session: Mapping[str, Any]) -> list[Event]:
        """COMPRESS-07, ECHO-09: `session` rides on the chunk with the finish_reason; an event of its own breaks clients."""
        return [(None, {**finish, **session})]

    def final_told(self, before: SessionInfo, after: SessionInfo, *, streamed: bool) -> SessionInfo:  # noqa: ARG002 - the rule is that the turn's end counts
        """COMPRESS-01, -07: the answer whose turn rotated the session tells the new id, a stream at its end."""
        return after

    def cors_allowed(self) -> tuple[str, ...]:
        """ECHO-07: what a browser may send."""
        return ("Authorization", "Content-Type", "Idempotency-Key", HEADER)

    def cors_exposed(self) -> tuple[str, ...]:
        """ECHO-07: what a browser may read."""
        return (HEADER, DEGRADED_HEADER, "Retry-After")

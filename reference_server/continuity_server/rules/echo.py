"""ECHO: how a client names a session, and how it learns the id of its session. Pure: header fields in, header fields out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from continuity_server.rules.error import Case, Refusal
from continuity_server.settings import HEADER, Options

DEGRADED_HEADER: Final = "X-Session-Degraded"
MAX_ID: Final = 256

Fields = list[tuple[str, str]]

CORS_ALLOWED: Final = ("Authorization", "Content-Type", "Idempotency-Key", HEADER)
"""ECHO-07: the request headers that a browser may send."""
CORS_EXPOSED: Final = (HEADER, DEGRADED_HEADER, "Retry-After")
"""ECHO-07: the response headers that a script may read."""


def is_id(text: str) -> bool:
    """Whether a client could send this text as the id of a session."""
    return 0 < len(text) <= MAX_ID and _is_visible_ascii(text)


def _is_visible_ascii(text: str) -> bool:
    """Whether there are only visible ASCII characters: every client and proxy passes these on unchanged."""
    return text.isascii() and text.isprintable() and " " not in text


class Surface(Enum):
    """The two endpoints that take turns."""

    CHAT = "chat"
    RESPONSES = "responses"


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What an answer says about its session. `rotated_from`: the id that this turn's compression left behind."""

    id: str
    rotated_from: str | None = None
    degraded: bool = False


class EchoRules:
    """The rules about the continuity header and about `session` in bodies."""

    options: Options

    def sent_id(self, fields: Iterable[tuple[str, str]], headers: Sequence[str] = (HEADER,)) -> str | None:
        """ECHO-14: the first of the continuity headers that has a value names the session."""
        sent = list(fields)
        named = (self.id_in(sent, header) for header in headers)
        return next((session for session in named if session is not None), None)

    def id_in(self, fields: Iterable[tuple[str, str]], header: str) -> str | None:
        """ISOLATE-03: the same header twice is refused; a single one is checked."""
        values = [value for name, value in fields if self.is_header(name, header)]
        if len(values) > 1:
            raise Refusal(Case.INVALID_SESSION_ID, f"The request has {len(values)} {header} headers. Send one.")
        return self.named_id(values[0].strip(" \t")) if values else None

    def is_header(self, name: str, header: str) -> bool:
        """ECHO-04: the field name in any case."""
        return name.lower() == header.lower()

    def named_id(self, value: str) -> str | None:
        """ECHO-04: an empty value equals no header."""
        return self.checked_id(value) if value else None

    def checked_id(self, value: str) -> str:
        """ISOLATE-03, -04: an id is 1 to 256 visible ASCII characters; anything else is refused."""
        if len(value) > MAX_ID:
            raise Refusal(
                Case.INVALID_SESSION_ID, f"The id in {HEADER} has more than {MAX_ID} characters. Send a shorter one."
            )
        if not _is_visible_ascii(value):
            raise Refusal(
                Case.INVALID_SESSION_ID,
                f"The id in {HEADER} is not visible ASCII. Send an id without blanks and accents.",
            )
        return value

    def chosen_id(self, sent: str | None, derived: Callable[[], str | None]) -> tuple[str | None, bool]:
        """DERIVE-14: a client-named id wins over derivation. The second value says whether the id is derived."""
        return (sent, False) if sent is not None else (derived(), True)

    def echoed_id(self, sent: str | None, root: str, tip: str) -> str:
        """ECHO-02, COMPRESS-01: the tip (echo=tip), or the id by which the client knows the chain (echo=alias)."""
        if self.options.echo == "tip":
            return tip
        return sent if sent is not None else root

    def answer_fields(self, session_info: SessionInfo) -> Fields:
        """ECHO-01, -03, -05: the continuity header, exactly once; HISTORY-06: a degraded answer says so."""
        return [*self.header_fields(session_info.id), *self.degraded_fields(session_info)]

    def header_fields(self, session: str) -> Fields:
        return [(HEADER, session)] if self.options.tells == "header" else []

    def degraded_fields(self, session_info: SessionInfo) -> Fields:
        return [(DEGRADED_HEADER, "history-unavailable")] if session_info.degraded else []

    def error_fields(self, session: str | None) -> Fields:
        """ECHO-08: an error after the session was resolved carries the header."""
        return self.header_fields(session) if session is not None else []

    def session_object(self, session_info: SessionInfo) -> dict[str, Any]:
        """ECHO-10: body and header name the same session."""
        return {
            "id": session_info.id,
            "rotated_from": session_info.rotated_from,
            "degraded": session_info.degraded,
        }

    def with_session(self, body: Mapping[str, Any], session_info: SessionInfo) -> dict[str, Any]:
        """ECHO-09: the OpenAI object as it is, and `session` beside its own fields."""
        session = {"session": self.session_object(session_info)} if self.options.tells == "header" else {}
        return {**body, **session}

    def check_same_session(self, named: str | None, tip: str) -> None:
        """ECHO-11: a header beside a slug or a response id must resolve to the same tip."""
        if named != tip:
            message = "The header and the body name two sessions. Leave one of the two out."
            raise Refusal(Case.SESSION_CONFLICT, message)

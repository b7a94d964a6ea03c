"""ERROR: every way in which a request is refused, with its status, type and code. Pure.

Any layer raises a `Refusal`. The middleware turns it into an answer, and a stream turns it into its last event.
"""

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any


@dataclass(frozen=True, slots=True)
class Kind:
    """The status, type and code of an error."""

    status: int
    type: str
    code: str | None


class Case(Enum):
    """Every way in which a request is refused."""

    INVALID_KEY = Kind(401, "authentication_error", "invalid_api_key")
    REQUIRES_KEY = Kind(403, "permission_error", "session_requires_key")
    INVALID_SESSION_ID = Kind(400, "invalid_request_error", "invalid_session_id")
    SESSION_CONFLICT = Kind(409, "invalid_request_error", "session_conflict")
    MUTUALLY_EXCLUSIVE = Kind(400, "invalid_request_error", "mutually_exclusive_parameters")
    INVALID_REQUEST = Kind(400, "invalid_request_error", "invalid_request")
    INVALID_JSON = Kind(400, "invalid_request_error", "invalid_json")
    PREVIOUS_RESPONSE_NOT_FOUND = Kind(404, "not_found_error", "previous_response_not_found")
    RESPONSE_NOT_FOUND = Kind(404, "not_found_error", "response_not_found")
    CONVERSATION_NOT_FOUND = Kind(404, "not_found_error", "conversation_not_found")
    SESSION_NOT_FOUND = Kind(404, "not_found_error", "session_not_found")
    TOOL_CALL_NOT_FOUND = Kind(404, "not_found_error", "tool_call_not_found")
    NOT_FOUND = Kind(404, "not_found_error", "not_found")
    METHOD_NOT_ALLOWED = Kind(405, "invalid_request_error", "method_not_allowed")
    SESSION_BUSY = Kind(409, "conflict_error", "session_busy")
    TOO_LARGE = Kind(413, "invalid_request_error", "request_too_large")
    NOT_JSON = Kind(415, "invalid_request_error", "unsupported_media_type")
    KEY_REUSED = Kind(409, "invalid_request_error", "idempotency_key_reused")
    RATE_LIMITED = Kind(429, "server_error", "upstream_error")
    INTERNAL = Kind(500, "server_error", "internal_error")
    UPSTREAM = Kind(502, "server_error", "upstream_error")
    HISTORY_UNAVAILABLE = Kind(503, "server_error", "history_unavailable")


class Refusal(Exception):  # noqa: N818 - the spec's word: a request is refused
    """A request that is refused. `session` is the id for the continuity header, once a session was resolved (ECHO-08)."""

    def __init__(self, case: Case, message: str, *, param: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.case = case
        self.param = param
        self.retry_after = retry_after
        self.session: str | None = None


def invalid(message: str, param: str | None = None) -> Refusal:
    """Make the most common refusal: a field of the request is wrong."""
    return Refusal(Case.INVALID_REQUEST, message, param=param)


class ErrorRules:
    """The rules about the form of an error."""

    def error_kind(self, case: Case) -> Kind:
        """ERROR: the status, type and code of a case are those of the table above."""
        return case.value

    def error_body(self, refusal: Refusal) -> dict[str, Any]:
        """ISOLATE-12: the OpenAI envelope. The message is one of ours: no trace, path, SQL or key gets in."""
        kind = self.error_kind(refusal.case)
        return {"error": {"message": str(refusal), "type": kind.type, "param": refusal.param, "code": kind.code}}

    def retry_fields(self, refusal: Refusal) -> list[tuple[str, str]]:
        """CONCUR-05: a busy session says when to try again. Clients of OpenAI repeat every other 409 too, unless they are told not to."""
        if refusal.retry_after is not None:
            return [("Retry-After", str(refusal.retry_after))]
        return [("X-Should-Retry", "false")] if refusal.case in {Case.SESSION_CONFLICT, Case.KEY_REUSED} else []

    def error_text(self, body: dict[str, Any]) -> tuple[str, str]:
        """ISOLATE-12, CONTRACT-03: every error is JSON, like every other answer. Returns the text and its content type."""
        return json.dumps(body), "application/json"

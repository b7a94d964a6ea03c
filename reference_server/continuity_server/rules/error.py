"""The errors of the contract, as data: each case with its status, type and code.

ERROR: errors have the status, type and code of this table. It knows neither HTTP libraries nor the store; `app.py` turns a `Refusal` into an
answer, and a stream turns it into its last event.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any


@dataclass(frozen=True, slots=True)
class Kind:
    """What a client can tell a case by."""

    status: int
    type: str
    code: str | None


class Case(Enum):
    """Every way in which a request is refused."""

    INVALID_KEY = Kind(401, "authentication_error", "invalid_api_key")
    REQUIRES_KEY = Kind(403, "permission_error", "session_requires_key")
    INVALID_SESSION_ID = Kind(400, "invalid_request_error", "invalid_session_id")
    SESSION_CONFLICT = Kind(400, "invalid_request_error", "session_conflict")
    MUTUALLY_EXCLUSIVE = Kind(400, "invalid_request_error", "mutually_exclusive_parameters")
    INVALID_REQUEST = Kind(400, "invalid_request_error", "invalid_request")
    INVALID_JSON = Kind(400, "invalid_request_error", "invalid_json")
    PREVIOUS_RESPONSE_NOT_FOUND = Kind(404, "not_found_error", "previous_response_not_found")
    RESPONSE_NOT_FOUND = Kind(404, "not_found_error", "response_not_found")
    SESSION_NOT_FOUND = Kind(404, "not_found_error", "session_not_found")
    NOT_FOUND = Kind(404, "not_found_error", "not_found")
    METHOD_NOT_ALLOWED = Kind(405, "invalid_request_error", "method_not_allowed")
    SESSION_BUSY = Kind(409, "conflict_error", "session_busy")
    TOO_LARGE = Kind(413, "invalid_request_error", "request_too_large")
    NOT_JSON = Kind(415, "invalid_request_error", "unsupported_media_type")
    KEY_REUSED = Kind(422, "invalid_request_error", "idempotency_key_reused")
    RATE_LIMITED = Kind(429, "server_error", "upstream_error")
    INTERNAL = Kind(500, "server_error", "internal_error")
    UPSTREAM = Kind(502, "server_error", "upstream_error")
    HISTORY_UNAVAILABLE = Kind(503, "server_error", "history_unavailable")


class Refusal(Exception):  # noqa: N818 - the spec's word: a request is refused
    """A request that is not answered. `session` is the id to tell, once one was resolved (ECHO-08)."""

    def __init__(self, case: Case, message: str, *, param: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.case = case
        self.param = param
        self.retry_after = retry_after
        self.session: str | None = None

    def body(self, kind: Kind) -> dict[str, Any]:
        """ISOLATE-12: the OpenAI envelope. The message is written by us: no trace, path, SQL or key gets in."""
        return {"error": {"message": str(self), "type": kind.type, "param": self.param, "code": kind.code}}


def invalid(message: str, param: str | None = None) -> Refusal:
    """Refuse a body that says what cannot be meant: the commonest refusal."""
    return Refusal(Case.INVALID_REQUEST, message, param=param)

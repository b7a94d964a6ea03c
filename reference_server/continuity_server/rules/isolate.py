"""ISOLATE: who may come in, whose things are whose, and what strangers learn. Pure: names and header fields in, names and refusals out."""

import hmac
import json
import secrets
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, TypeVar

from continuity_server.rules.error import Case, Kind, Refusal
from continuity_server.rules.messages import Message, Messages

T = TypeVar("T")


class Act(Enum):
    """What a principal wants to do with a session or a response."""

    READ = "read"
    CONTINUE = "continue"
    DELETE = "delete"


class IsolateRules:
    """The rules about keys, principals, replays, errors and minted ids."""

    def wants_key(self, method: str, path: str) -> bool:
        """ISOLATE-01: every endpoint wants a key, but OPTIONS and /health."""
        return method != "OPTIONS" and path != "/health"

    def is_key(self, known: str, sent: str) -> bool:
        """ISOLATE-01, CONTRACT-08: the whole key and nothing else, compared in constant time."""
        return hmac.compare_digest(known.encode(), sent.encode("utf-8", "surrogateescape"))

    def unknown_key(self, fields: Iterable[tuple[str, str]]) -> Refusal:  # noqa: ARG002 - the rule is that nothing of the request is told
        """ISOLATE-01, -12: the same words for a missing key and a wrong one, and none of the request's own."""
        return Refusal(Case.INVALID_KEY, "The API key is missing or wrong. Send a known one as a bearer token.")

    def may_continue(self, *, keys: bool, single_user: bool) -> bool:
        """ISOLATE-02: ids are no passwords. Without keys only a server for one person lets sessions be continued."""
        return keys or single_user

    def whose(self, principal: str, ident: str, act: Act, holder: Callable[[], str | None]) -> str:  # noqa: ARG002 - the rule is that the holder does not matter
        """ISOLATE-06, -07: everybody finds what is theirs, whatever they want to do with it; what others have is as unknown."""
        return principal

    def listed(self, principal: str, everybody: Callable[[], Sequence[str]]) -> Sequence[str]:  # noqa: ARG002 - the rule is that others do not matter
        """ISOLATE-06: a list has the principal's own sessions."""
        return [principal]

    def minted(self, prefix: str) -> str:
        """ISOLATE-08: a minted id has 128 random bits."""
        return f"{prefix}{secrets.token_hex(16)}"

    def replay_scope(self, owner: str, chain: str) -> tuple[str, str]:
        """ISOLATE-10: an Idempotency-Key counts for one principal and one chain, named by its root."""
        return owner, chain

    def replayed(self, found: T | None) -> T | None:
        """ISOLATE-10: an answer that is kept under the key is given again."""
        return found

    def check_replay(self, kept: str, sent: str) -> None:
        """ISOLATE-10: the same key with another body is a mistake of the client."""
        if kept != sent:
            raise Refusal(Case.KEY_REUSED, "This Idempotency-Key was used with another body. Send a new key.")

    def left_by_replay(self, asked: Sequence[Message]) -> Messages:  # noqa: ARG002 - nothing, whatever was asked
        """ISOLATE-10: ... and no second turn is stored."""
        return []

    def cache_control(self, method: str, *, streamed: bool) -> str | None:  # noqa: ARG002 - on every answer
        """ISOLATE-11: no cache keeps what a session said."""
        return "no-store"

    def error_kind(self, case: Case) -> Kind:
        """ERROR: every case has its status, type and code."""
        return case.value

    def error_body(self, refusal: Refusal) -> dict[str, Any]:
        """ISOLATE-12: the OpenAI envelope. The message is written by us: no trace, path, SQL or key gets in."""
        return refusal.body(self.error_kind(refusal.case))

    def error_text(self, body: dict[str, Any]) -> tuple[str, str]:
        """ISOLATE-12, CONTRACT-03: every error is JSON, like every other answer. Gives the text and its content type."""
        return json.dumps(body), "application/json"

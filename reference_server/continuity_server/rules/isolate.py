"""ISOLATE: who may call, who may continue a session, and ids that nobody can guess. Pure."""

import hmac
import secrets

from continuity_server.rules.error import Case, Refusal


class IsolateRules:
    """The rules about keys, replays and minted ids."""

    def wants_key(self, method: str, path: str) -> bool:
        """ISOLATE-01: every endpoint needs a key, except OPTIONS and /health."""
        return method != "OPTIONS" and path != "/health"

    def is_key(self, known: str, sent: str) -> bool:
        """ISOLATE-01, CONTRACT-08: the whole key and nothing else, compared in constant time."""
        return hmac.compare_digest(known.encode(), sent.encode("utf-8", "surrogateescape"))

    def check_may_continue(self, *, keys: bool, single_user: bool) -> None:
        """ISOLATE-02: an id is not a password. Without keys only a server for one person lets sessions be continued."""
        if not keys and not single_user:
            message = "This server has no keys, so nobody can prove that a session is theirs. Configure a key to continue sessions."
            raise Refusal(Case.REQUIRES_KEY, message)

    def minted(self, prefix: str) -> str:
        """ISOLATE-08: a minted id has 128 random bits."""
        return f"{prefix}{secrets.token_hex(16)}"

    def check_replay(self, stored: str, sent: str) -> None:
        """ISOLATE-10: the same Idempotency-Key with another body is a mistake of the client. Both bodies come as fingerprints."""
        if stored != sent:
            raise Refusal(Case.KEY_REUSED, "This Idempotency-Key was used with another body. Send a new key.")

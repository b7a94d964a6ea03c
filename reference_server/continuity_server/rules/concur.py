"""CONCUR: which turns wait for each other, and what one is told that may not wait. Pure: names in, names out."""

from typing import Final

from continuity_server.settings import Options

_SECONDS: Final = 1


class ConcurRules:
    """The rules about several turns at once."""

    options: Options

    def chain_lock(self, owner: str, chain: str, request: str) -> tuple[str, str, str]:  # noqa: ARG002 - the rule is that the request does not matter
        """CONCUR-01, -03: turns of one chain of sessions wait for each other, and for nobody else."""
        return ("chain", owner, chain)

    def rejects(self) -> bool:
        """CONCUR-01: a turn of a busy session waits (serialize), or is refused (reject)."""
        return self.options.turns == "reject"

    def retry_after(self) -> int | None:
        """CONCUR-05: who is refused is told when to come again."""
        return _SECONDS

"""CONCUR: what happens to a turn whose session is busy. Pure."""

from typing import Final

from continuity_server.rules.error import Case, Refusal
from continuity_server.settings import Options

_RETRY_SECONDS: Final = 1


class ConcurRules:
    """The rules about several turns at once."""

    options: Options

    def check_not_busy(self, *, busy: bool) -> None:
        """CONCUR-01, -05: a turn of a busy session waits (serialize), or is refused with the time to try again (reject)."""
        if busy and self.options.turns == "reject":
            message = "Another turn of this session is running. Try again when it is answered."
            raise Refusal(Case.SESSION_BUSY, message, retry_after=_RETRY_SECONDS)

"""Whether the store works, as GET /health tells it. What fails is logged, and so is when it works again."""

import logging
import time
from typing import Final

logger = logging.getLogger("continuity.store")

READ: Final = "read"
WRITTEN: Final = "written"
_LOG_SECONDS: Final = 10.0
"""A failure is logged once in this time, however many turns it meets. A store that could not be read counts as working again after it."""


class Health:
    """What failed last, and when. Nothing is written here that a client must not see: the reasons go to the log only."""

    def __init__(self) -> None:
        self._failed: dict[str, float] = {}

    def failed(self, what: str, why: object) -> None:
        """Note that the store could not be read or written."""
        now = time.monotonic()
        if now - self._failed.get(what, -_LOG_SECONDS) >= _LOG_SECONDS:
            logger.error("the store cannot be %s: %s", what, why)
            self._failed[what] = now

    def works(self, what: str) -> None:
        """Note that the store was read or written."""
        if self._failed and self._failed.pop(what, None) is not None:
            logger.warning("the store can be %s again", what)

    @property
    def writes_failed(self) -> bool:
        """Whether the last attempt to write failed."""
        return WRITTEN in self._failed

    @property
    def failures(self) -> list[str]:
        """What cannot be done now."""
        now = time.monotonic()
        lately = {what for what, since in self._failed.items() if now - since < _LOG_SECONDS}
        return sorted(lately | ({WRITTEN} & self._failed.keys()))

"""Whether the target is still there after a connection was lost. A dead target ends the run, with one line instead of a failure for every requirement."""

import asyncio
from typing import Final

from continuity_conformance.core.errors import UnreachableError
from continuity_conformance.core.urls import public_url
from continuity_conformance.http.connect import must_answer
from continuity_conformance.target.server import Server

_LOOKS: Final = 10
_SECONDS_BETWEEN: Final = 0.1
"""The port of a process that is just dying accepts connections for a moment."""
_PATIENCE: Final = 30.0
"""Seconds in which a target that is alive accepts a connection, also on a very busy machine. A dead one refuses it at once."""
_SILENCE: Final = 30
"""After so many requests in a row that were not answered in time, the target is as good as dead."""
_PATIENT_CHECKS: Final = 5
"""A target that was alive so often only loses connections: one look is enough then."""


class LifeCheck:
    """The checks of one run."""

    def __init__(self) -> None:
        self._alive = 0

    async def must_live(self, server: Server, requirement: str, silent: int = 0) -> None:
        """Raise UnreachableError if the target is dead. `requirement`: the one that lost its connection. `silent`: requests in a row without an answer in time."""
        if silent >= _SILENCE:
            raise _dead(server, requirement, f"{silent} requests in a row were not answered in time.")
        for _ in range(_LOOKS if self._alive < _PATIENT_CHECKS else 1):
            await _look(server, requirement)
            await asyncio.sleep(_SECONDS_BETWEEN)
        self._alive += 1


async def _look(server: Server, requirement: str) -> None:
    try:
        if server.runs:
            await must_answer(server.url, server.profile.ca, _PATIENCE)
            return
        reason = "Its process has ended."
    except UnreachableError as error:
        reason = error.what
    raise _dead(server, requirement, reason)


def _dead(server: Server, requirement: str, reason: str) -> UnreachableError:
    return UnreachableError(
        f"The target died during the run, while {requirement} was played: {reason}",
        where=public_url(server.url),
        do=server.last_output or "Look into its log, start it again, and repeat the run.",
    )

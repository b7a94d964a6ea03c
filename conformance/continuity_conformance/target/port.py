"""Ports: one for each process that the kit starts, held for all its lives.

A port that a process does not listen on, before its start and while it restarts, could be given to the process of another run; then the kit
would talk to a stranger's target. So the UDP port of the same number is bound for as long as the port is held: no two runs have the same one.
"""

import contextlib
import secrets
import socket
from typing import Final

from continuity_conformance.core.errors import NotStartedError

_PORTS: Final = range(20_000, 32_000)
"""Below those that systems give to outgoing connections."""


class Port:
    """A port on loopback that nobody listens on, until it is released."""

    def __init__(self) -> None:
        self._held = socket.socket(type=socket.SOCK_DGRAM)
        first = secrets.randbelow(len(_PORTS))
        for number in (*_PORTS[first:], *_PORTS[:first]):
            with contextlib.suppress(OSError), socket.socket() as listener:
                listener.bind(("127.0.0.1", number))
                self._held.bind(("127.0.0.1", number))
                self.number = number
                return
        self._held.close()
        raise NotStartedError("no port is free for the target.", do="Stop what listens on them and run again.")

    def release(self) -> None:
        self._held.close()

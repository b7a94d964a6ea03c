"""Reserve a port for each process that the kit starts, also while the process restarts.

Before its start and during a restart nothing listens on the port, so another run could use it, and the kit would then test the wrong target. To
prevent this, the kit binds the UDP port with the same number for as long as it reserves the port.
"""

import contextlib
import secrets
import socket
from typing import Final

from continuity_conformance.core.errors import NotStartedError

_PORTS: Final = range(20_000, 32_000)
"""Below the ports that systems use for outgoing connections."""


class Port:
    """A free port on loopback, reserved until `release`."""

    def __init__(self) -> None:
        self._reserved = socket.socket(type=socket.SOCK_DGRAM)
        first = secrets.randbelow(len(_PORTS))
        for number in (*_PORTS[first:], *_PORTS[:first]):
            with contextlib.suppress(OSError), socket.socket() as listener:
                listener.bind(("127.0.0.1", number))
                self._reserved.bind(("127.0.0.1", number))
                self.number = number
                return
        self._reserved.close()
        raise NotStartedError(
            f"no port from {_PORTS.start} to {_PORTS.stop - 1} is free for the target.",
            do="Stop the programs that use them, and run again.",
        )

    def release(self) -> None:
        self._reserved.close()

"""A load generator: N clients on raw sockets in one thread, so that it costs far less than any server that it measures.

Each client sends a request, reads the whole answer, notes how long it took, and sends the next one. It understands just as much HTTP as aiohttp writes: a
`Content-Length`, or chunks that end with an empty one.
"""

import selectors
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

_READ: Final = 1 << 16
_STALLED_SECONDS: Final = 60.0
_END_OF_HEAD: Final = b"\r\n\r\n"
_LAST_CHUNK: Final = b"0\r\n\r\n"

Requests = Callable[[int, int], bytes]
"""Makes the request from the number of the client and the number of its turn."""


class LoadFailedError(Exception):
    """An answer was not what the load generator expects, so that its figures would mean nothing."""


@dataclass(slots=True)
class Client:
    """One client: its connection, what it has read of the present answer, and how many turns it has had."""

    number: int
    connection: socket.socket
    turns: int = 0
    started: float = 0.0
    answer: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True, slots=True)
class Load:
    """What was measured: how long each answer took in how many seconds. `all_answers` counts those of the warm-up too."""

    all_answers: int
    seconds: float
    latencies: list[float]

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds

    def slowest_of(self, share: float) -> float:
        """The seconds that this share of the answers took at most."""
        if not self.latencies:
            raise LoadFailedError(
                f"No answer came in the {self.seconds:g} s that are measured: measure longer (--seconds)."
            )
        return sorted(self.latencies)[min(int(share * len(self.latencies)), len(self.latencies) - 1)]


def run(port: int, clients: int, seconds: float, requests: Requests, *, warm_up: float = 0.3) -> Load:
    """Send requests for this long. What is answered during the warm-up is not counted."""
    with selectors.DefaultSelector() as selector:
        everybody = [_connected(number, port, selector) for number in range(clients)]
        try:
            return _measured(selector, everybody, seconds, requests, warm_up)
        finally:
            for client in everybody:
                client.connection.close()


def once(port: int, message: bytes) -> bytes:
    """Send one request, and return the whole answer."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        return _answer(connection, message)


def in_a_row(port: int, messages: Iterable[bytes]) -> list[float]:
    """Send requests one after the other on one connection, and return the seconds that each took."""
    latencies: list[float] = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for message in messages:
            started = time.perf_counter()
            _answer(connection, message)
            latencies.append(time.perf_counter() - started)
    return latencies


def _answer(connection: socket.socket, message: bytes) -> bytes:
    connection.settimeout(_STALLED_SECONDS)
    connection.sendall(message)
    answer = bytearray()
    while not is_whole(answer):
        answer += connection.recv(_READ)
    return bytes(answer)


def _connected(number: int, port: int, selector: selectors.BaseSelector) -> Client:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client = Client(number, connection)
    selector.register(connection, selectors.EVENT_READ, client)
    return client


def _measured(
    selector: selectors.BaseSelector, everybody: list[Client], seconds: float, requests: Requests, warm_up: float
) -> Load:
    for client in everybody:
        _send(client, requests)
    begin = time.perf_counter() + warm_up
    end, now, answers = begin + seconds, 0.0, 0
    latencies: list[float] = []
    while now < end:
        for key, _ in selector.select(_STALLED_SECONDS) or _stalled():
            client = key.data
            client.answer += client.connection.recv(_READ) or _closed(client)
            if not is_whole(client.answer):
                continue
            now = time.perf_counter()
            if begin <= now < end:
                latencies.append(now - client.started)
            answers += 1
            _send(client, requests)
    return Load(answers, seconds, latencies)


def _send(client: Client, requests: Requests) -> None:
    client.answer.clear()
    message = requests(client.number, client.turns)
    client.turns += 1
    client.started = time.perf_counter()
    client.connection.sendall(message)


def is_whole(answer: bytearray) -> bool:
    """Whether an answer has come to its end."""
    head = answer.find(_END_OF_HEAD)
    if head < 0:
        return False
    if not answer.startswith(b"HTTP/1.1 200"):
        raise LoadFailedError(f"the server answered {bytes(answer[:300])!r}")
    length = answer.find(b"Content-Length: ", 0, head)
    if length < 0:
        return answer.endswith(_LAST_CHUNK)
    end = answer.find(b"\r\n", length)
    return len(answer) >= head + len(_END_OF_HEAD) + int(answer[length + 16 : end])


def _stalled() -> list[tuple[selectors.SelectorKey, int]]:
    raise LoadFailedError(f"no client got an answer for {_STALLED_SECONDS:.0f} s")


def _closed(client: Client) -> bytes:
    raise LoadFailedError(f"the server closed the connection of client {client.number}")

"""A server in a thread that closes each connection after a time without a request, as uvicorn and Node.js do, or when it pleases."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_BODY: Final = b"{}"
_ANSWER: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n" + _BODY


@contextmanager
def short_idle_server(
    idle: float = 60.0, answers: int = 1000, last: bytes = b"", delay: float = 0.0
) -> Iterator[tuple[str, list[int]]]:
    """Yield the URL, and how many requests each connection had.

    `idle`: seconds without a request until a connection is closed. `answers`: how many requests of a connection are answered; the next one gets `last`, and
    the connection is closed. `delay`: seconds before each answer.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    counts: list[int] = []

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            counts.append(0)
            threading.Thread(target=serve, args=(connection, len(counts) - 1), daemon=True).start()

    def serve(connection: socket.socket, number: int) -> None:
        connection.settimeout(idle)
        with connection:
            while _request(connection):
                counts[number] += 1
                if counts[number] > answers:
                    connection.sendall(last)
                    return
                time.sleep(delay)
                connection.sendall(_ANSWER)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", counts
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _request(connection: socket.socket) -> bytes:
    """One request without a long body; empty if there is none."""
    try:
        return connection.recv(65536)
    except OSError:
        return b""

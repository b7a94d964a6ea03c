"""One exchange over a plain socket, byte for byte: for header values that an HTTP client refuses to send."""

import http.client
import socket
import ssl
import threading
from contextlib import suppress
from urllib.parse import SplitResult, urlsplit

from continuity_conformance.http.messages import BODY_AT_MOST, Answer, Request, decoded, head_of, overlong


def exchange(request: Request, seconds: float, trusted: ssl.SSLContext) -> Answer:
    """Send the exact bytes over a socket of our own."""
    address = urlsplit(request.url)
    body = request.data or b""
    fields = [
        ("Host", address.netloc.rpartition("@")[2]),
        *request.fields.items(),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
    ]
    resource = f"{address.path}?{address.query}" if address.query else address.path
    lines = [f"{request.method} {resource} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
    with _connection(address, seconds, trusted) as connection:
        # A time-out of the socket begins anew with every byte, so that a server could hold this thread for ever.
        over = threading.Timer(seconds, _shut, [connection])
        over.daemon = True
        over.start()
        try:
            return _exchanged(connection, request, "\r\n".join([*lines, "", ""]), body)
        finally:
            over.cancel()


def _exchanged(connection: socket.socket, request: Request, head: str, body: bytes) -> Answer:
    connection.sendall(head.encode("utf-8", "surrogateescape") + body)
    response = http.client.HTTPResponse(connection, method=request.method)
    response.begin()
    answer = head_of(response.status, ((name, _as_sent(value)) for name, value in response.getheaders()))
    if answer.error:
        return answer
    received = response.read(BODY_AT_MOST + 1)
    return overlong(answer, received, BODY_AT_MOST) if len(received) > BODY_AT_MOST else decoded(answer, received)


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _as_sent(value: str) -> str:
    """A header value as UTF-8, like everywhere else: `http.client` takes bytes for Latin-1."""
    return value.encode("latin-1").decode("utf-8", "surrogateescape")


def _connection(address: SplitResult, seconds: float, trusted: ssl.SSLContext) -> socket.socket:
    host, secure = address.hostname or "", address.scheme == "https"
    connection = socket.create_connection((host, address.port or (443 if secure else 80)), timeout=seconds)
    if not secure:
        return connection
    try:
        return trusted.wrap_socket(connection, server_hostname=host)
    except BaseException:
        connection.close()
        raise

"""One exchange over a plain socket, byte for byte: for header values that an HTTP client refuses to send."""

import http.client
import socket
import ssl
from urllib.parse import SplitResult, urlsplit

from continuity_conformance.http.messages import BODY_AT_MOST, Answer, Request, decoded


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
        connection.sendall("\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape") + body)
        response = http.client.HTTPResponse(connection, method=request.method)
        response.begin()
        headers = tuple((name, _as_sent(value)) for name, value in response.getheaders())
        head = Answer(status=response.status, headers=headers)
        return decoded(head, response.read(BODY_AT_MOST))


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

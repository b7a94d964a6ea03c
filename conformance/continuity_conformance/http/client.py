"""HTTP to the target: one request, one answer, whatever happens on the wire.

Nothing here raises for what a target does: a lost connection, a time-out, broken JSON are an `Answer` with an `error`. The whole
exchange, the body and the stream included, has one deadline. Knows nothing of requirements.
"""

import asyncio
import http.client
import io
import json
import re
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self
from urllib.parse import SplitResult, urlsplit

import aiohttp
from multidict import CIMultiDict
from yarl import URL

_BODY_AT_MOST: Final = 4 * 1024 * 1024
_PIECE: Final = 256 * 1024
_KEPT_AT_MOST: Final = 64 * 1024
_TIMED_OUT: Final = "no complete answer"
_FAILED_IN_STREAM: Final = 500
NO_UTF8: Final = "\udcff"
"""A byte that never occurs in UTF-8, as Python reads it."""
_UNSENDABLE = re.compile(r"[\x00-\x1f\x7f\udc80-\udcff]")
USER_AGENT: Final = "session-continuity-conformance/1.0"


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it is sent. Header fields are pairs, so that one may be sent twice. A body of bytes goes as it is, any other as JSON.

    `made_of`: texts, and how often each comes, that make up a body which is too long to show; `key_as`: what stands in the field of the key, which is `{key}`
    there, and `key_in` that field (`curl.py`).
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: object = None
    hang_up: bool = False
    made_of: tuple[tuple[str, int], ...] = ()
    key_as: str = ""
    key_in: str = "Authorization"

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    @property
    def data(self) -> bytes | None:
        """The bytes of the body, or None where there is none."""
        if self.body is None or isinstance(self.body, bytes):
            return self.body
        return json.dumps(self.body, ensure_ascii=False).encode("utf-8", "surrogatepass")

    @property
    def fields(self) -> CIMultiDict[str]:
        """The header fields, with the content type of a JSON body; bytes say themselves what they are, or do not."""
        fields = CIMultiDict(self.headers)
        if self.body is not None and not isinstance(self.body, bytes):
            fields.setdefault("Content-Type", "application/json")
        return fields

    @property
    def needs_raw_socket(self) -> bool:
        """HTTP clients rightly refuse to send control characters, and bytes that are no UTF-8 (lone surrogates here)."""
        return any(_UNSENDABLE.search(value) for _, value in self.headers)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `status` 0: nothing did, and `error` says why. `events`: the data of a stream, JSON or a bare string."""

    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    text: str = ""
    body: object = None
    events: tuple[object, ...] = ()
    streamed: bool = False
    error: str = ""
    started: float = 0.0
    seconds: float = 0.0

    def fields(self, name: str) -> list[str]:
        return [value for field, value in self.headers if field.lower() == name.lower()]

    @property
    def timed_out(self) -> bool:
        return self.error.startswith(_TIMED_OUT)

    @property
    def content_type(self) -> str:
        return next(iter(self.fields("content-type")), "").partition(";")[0].strip().lower()

    @property
    def failed_in_stream(self) -> bool:
        """After the first event a failure can only be told by an event."""
        return any(dig(event, "error") or dig(event, "type") == "response.failed" for event in self.events)

    @property
    def outcome(self) -> int:
        """The status that counts: a failure that a stream tells after its first event is a 5xx."""
        return _FAILED_IN_STREAM if self.failed_in_stream else self.status

    @property
    def accepted(self) -> bool:
        return 200 <= self.status < 300 and not self.error and not self.failed_in_stream  # noqa: PLR2004

    @property
    def refused(self) -> bool:
        return 400 <= self.status < 500 or self.status == 503  # noqa: PLR2004


class Transport:
    """Sends requests over one pool of connections."""

    def __init__(self, turn_seconds: float, trusted: ssl.SSLContext | None = None) -> None:
        self._seconds = turn_seconds
        self._trusted = trusted or ssl.create_default_context()
        self._session: aiohttp.ClientSession | None = None
        self.sent = 0

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=0, force_close=False, ssl=self._trusted)
        self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    def at_most(self, requests: int) -> "BoundedTransport":
        """The same, with so many requests on their way at once; the others wait, and that is not the target's time."""
        return BoundedTransport(self, requests)

    async def send(self, request: Request) -> Answer:
        started = time.monotonic()
        self.sent += 1
        answer = await self._within_deadline(request)
        return replace(answer, started=started, seconds=time.monotonic() - started)

    async def _within_deadline(self, request: Request) -> Answer:
        try:
            async with asyncio.timeout(self._seconds):
                return await (self._send_raw(request) if request.needs_raw_socket else self._send(request))
        except TimeoutError:
            return Answer(error=f"{_TIMED_OUT} in {self._seconds:g} s")
        except (aiohttp.ClientError, OSError, http.client.HTTPException, ValueError) as trouble:
            return Answer(error=f"connection lost: {_in_words(trouble)}")

    async def _send(self, request: Request) -> Answer:
        assert self._session is not None, "use the transport in its `async with` block"
        url = URL(request.url, encoded=True)
        async with self._session.request(
            request.method,
            url,
            headers=request.fields,
            data=_in_pieces(request.data),
            allow_redirects=False,
            # Bytes that say nothing of their type are sent just so.
            skip_auto_headers=("Content-Type",),
        ) as response:
            return await _read(response, hang_up=request.hang_up)

    async def _send_raw(self, request: Request) -> Answer:
        return await asyncio.to_thread(_exchange_raw, request, self._seconds, self._trusted)


class BoundedTransport:
    """A transport for a server that many scenarios share, each of them as if alone."""

    def __init__(self, transport: Transport, requests: int) -> None:
        self._transport = transport
        self._places = asyncio.Semaphore(requests)

    @property
    def sent(self) -> int:
        return self._transport.sent

    async def send(self, request: Request) -> Answer:
        async with self._places:
            return await self._transport.send(request)


AnyTransport = Transport | BoundedTransport


def _in_pieces(data: bytes | None) -> bytes | io.BytesIO | None:
    """A large body is sent piece by piece, so that the others on the loop get their turn."""
    return io.BytesIO(data) if data is not None and len(data) > _PIECE else data


async def _read(response: aiohttp.ClientResponse, *, hang_up: bool) -> Answer:
    head = Answer(status=response.status, headers=tuple((name, value) for name, value in response.headers.items()))
    streamed = head.content_type == "text/event-stream"
    raw = bytearray()
    try:
        async for piece in response.content.iter_any():
            raw += piece
            if len(raw) > _BODY_AT_MOST:
                return _decoded(head, bytes(raw), streamed, f"the answer is longer than {_BODY_AT_MOST} bytes")
            if hang_up and b"\n\n" in raw:
                response.close()
                return _decoded(head, bytes(raw), streamed, "")
    except (aiohttp.ClientError, OSError) as trouble:
        return _decoded(head, bytes(raw), streamed, f"connection lost: {_in_words(trouble)}")
    return _decoded(head, bytes(raw), streamed, "")


def _decoded(head: Answer, raw: bytes, streamed: bool, error: str) -> Answer:
    text = raw.decode("utf-8", "replace")
    if streamed:
        return replace(head, text=text[:_KEPT_AT_MOST], events=events(text), streamed=True, error=error)
    return replace(head, text=text[:_KEPT_AT_MOST], body=_json(text), error=error)


def events(text: str) -> tuple[object, ...]:
    """The data of each server-sent event: parsed where it is JSON, else as it is."""
    blocks = re.split(r"\r?\n\r?\n", text)
    data = (
        "\n".join(line[5:].lstrip(" ") for line in block.splitlines() if line.startswith("data:")) for block in blocks
    )
    return tuple(item if (parsed := _json(item)) is None else parsed for item in data if item)


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return None


def _in_words(trouble: Exception) -> str:
    return str(trouble) or type(trouble).__name__


def _exchange_raw(request: Request, seconds: float, trusted: ssl.SSLContext) -> Answer:
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
        return _decoded(head, response.read(_BODY_AT_MOST), head.content_type == "text/event-stream", "")


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


def dig(value: object, *path: str | int) -> object:
    """The value at a path of keys and positions, or None where any of it is missing: an answer may have any shape."""
    for key in path:
        if isinstance(key, str) and isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(key, int) and isinstance(value, Sequence) and not isinstance(value, str):
            value = value[key] if -len(value) <= key < len(value) else None
        else:
            return None
    return value

"""The connection of the openai client, which reads only so much of an answer. The client itself has no limit: an endless answer would fill the memory."""

import ssl
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from continuity_conformance.http.messages import BODY_AT_MOST, HEADERS_AT_MOST

if TYPE_CHECKING:  # it comes with the openai package, and importing both takes a second
    import httpx

_COMPRESSED_AT_MOST: Final = 16 * 1024
"""Of a compressed body. gzip makes at most a thousand bytes of one, so this is 16 MB at most."""
_CODINGS: Final = frozenset({"", "identity", "gzip", "deflate"})


def bounded_transport(trusted: ssl.SSLContext) -> "httpx.AsyncBaseTransport":
    """A transport of httpx that fails with ValueError at an answer that is too long."""
    import httpx  # noqa: PLC0415 - see above

    class Bounded(httpx.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            response = await super().handle_async_request(request)
            coding = response.headers.get("Content-Encoding", "").lower()
            if sum(len(name) + len(value) for name, value in response.headers.raw) > HEADERS_AT_MOST:
                raise ValueError(f"the header fields are longer than {HEADERS_AT_MOST} bytes")
            if coding not in _CODINGS:
                raise ValueError(f"the answer has the encoding {coding[:40]!r}, which nobody asked for")
            limit = BODY_AT_MOST if coding in {"", "identity"} else _COMPRESSED_AT_MOST
            assert isinstance(response.stream, httpx.AsyncByteStream)
            response.stream = BoundedStream(response.stream, limit)
            return response

    class BoundedStream(httpx.AsyncByteStream):
        def __init__(self, stream: httpx.AsyncByteStream, limit: int) -> None:
            self._stream = stream
            self._left = limit

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._stream:
                self._left -= len(piece)
                if self._left < 0:
                    raise ValueError("the answer is longer than the kit reads")
                yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    return Bounded(verify=trusted)

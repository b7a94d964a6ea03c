"""The connection of the openai client, which reads only so much of an answer. The client itself has no limit: an endless answer would fill the memory.

It imports the HTTP client of the openai package, which takes long: `openai_client` loads this module in a thread, together with the openai package.
"""

import ssl
from collections.abc import AsyncIterator
from typing import Final

import httpx2 as httpx

from continuity_conformance.http.messages import BODY_AT_MOST, HEADERS_AT_MOST

_COMPRESSED_AT_MOST: Final = 16 * 1024
"""Of a compressed body. gzip makes at most a thousand bytes of one, so this is 16 MB at most."""
_CODINGS: Final = frozenset({"", "identity", "gzip", "deflate"})


class BoundedHttpx(httpx.AsyncHTTPTransport):
    """Fails with ValueError at an answer that is too long."""

    def __init__(self, trusted: ssl.SSLContext) -> None:
        super().__init__(verify=trusted)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        coding = response.headers.get("Content-Encoding", "").lower()
        if sum(len(name) + len(value) for name, value in response.headers.raw) > HEADERS_AT_MOST:
            raise ValueError(f"the header fields are longer than {HEADERS_AT_MOST} bytes")
        if coding not in _CODINGS:
            raise ValueError(f"the answer has the encoding {coding[:40]!r}, which nobody asked for")
        assert isinstance(response.stream, httpx.AsyncByteStream), (
            "an asynchronous transport has an asynchronous stream"
        )
        limit = BODY_AT_MOST if coding in {"", "identity"} else _COMPRESSED_AT_MOST
        response.stream = BoundedStream(response.stream, limit)
        return response


class BoundedStream(httpx.AsyncByteStream):
    """The bytes of an answer, up to a limit."""

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

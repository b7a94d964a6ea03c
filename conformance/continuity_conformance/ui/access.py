"""Who may ask: the token, and the headers Host and Origin. And the headers of every answer.

The page can start programs (a profile names them), so nobody else may use it: no other user of the machine (token), no other web page (Origin, and the cookie that
other sites cannot send), and no foreign name that resolves to 127.0.0.1 (Host).
"""

import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_HOSTS: Final = ("127.0.0.1", "localhost")
_READING: Final = frozenset({"GET", "HEAD"})
_HEADERS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_REFUSED: Final = "Open the address that `continuity ui` printed: it has the token.\n"


class PageAccess:
    """Decides about each request. A visit with the token in its address gets a cookie and an address without it."""

    def __init__(self, port: int) -> None:
        self.token = secrets.token_urlsafe(32)
        self._cookie = f"continuity-ui-{port}"
        self._hosts = frozenset(f"{host}:{port}" for host in _HOSTS)

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            answer = await self._answer(request, handler)
        except web.HTTPException as error:
            error.headers.update({name: value for name, value in _HEADERS.items() if name not in error.headers})
            raise
        if not answer.prepared:
            answer.headers.update({name: value for name, value in _HEADERS.items() if name not in answer.headers})
        return answer

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.headers.get("Host", "").lower() not in self._hosts:
            raise web.HTTPForbidden(text="This page has another address.\n")
        if not self._from_here(request):
            raise web.HTTPForbidden(text="This page answers no other site.\n")
        if request.method in _READING and self._is_token(request.query.get("token", "")):
            return self._welcome()
        if not self._is_token(request.cookies.get(self._cookie, "")):
            raise web.HTTPForbidden(text=_REFUSED)
        return await handler(request)

    def _from_here(self, request: web.Request) -> bool:
        """Whether the page itself asks. What changes something must say so; a link that somebody follows says nothing."""
        origin = request.headers.get("Origin")
        if origin is None:
            return request.method in _READING
        return urlsplit(origin).scheme == "http" and urlsplit(origin).netloc == request.headers["Host"]

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self.token.encode())

    def _welcome(self) -> web.Response:
        answer = web.Response(status=303, headers={"Location": "/"})
        # Lax, not Strict: with Strict the browser would not send it to the address that this very answer leads to, if another program opened the link.
        answer.set_cookie(self._cookie, self.token, httponly=True, samesite="Lax", path="/")
        return answer


def stream_headers() -> dict[str, str]:
    """The headers of an answer that begins before the middleware sees it."""
    return {**_HEADERS, "Content-Type": "text/event-stream"}

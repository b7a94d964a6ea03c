"""The server of the page, from its start to Ctrl-C."""

import asyncio
import errno
import signal
import socket
import webbrowser
from collections.abc import Callable
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from aiohttp import web

from continuity_conformance.core.errors import UsageError
from continuity_conformance.ui.access import PageAccess
from continuity_conformance.ui.history import RunHistory
from continuity_conformance.ui.routes import Routes

_LOOPBACK: Final = "127.0.0.1"
_ENDING: Final = ("SIGINT", "SIGTERM", "SIGHUP")
_WHY: Final = {errno.EADDRINUSE: "another program uses this port", errno.EACCES: "this port needs more rights"}


def serve(port: int, target: str, profile: str, *, browser: bool, say: Callable[[str], None]) -> None:
    """Serve the page until a signal comes. Raises UsageError if the port is taken."""
    with _listen(port) as listener:
        asyncio.run(_serve(listener, Routes(target, profile, RunHistory()), browser=browser, say=say))


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((_LOOPBACK, port))
    except OSError as error:
        why = _WHY.get(error.errno or 0, str(error))
        where = f"{_LOOPBACK} port {port}"
        raise UsageError(f"the page cannot be served: {why}.", where=where, do="Choose another with --port.") from None


async def _serve(listener: socket.socket, routes: Routes, *, browser: bool, say: Callable[[str], None]) -> None:
    port = listener.getsockname()[1]
    access = PageAccess(port)
    runner = web.AppRunner(routes.app(access), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    ended = asyncio.Event()
    for name in _ENDING:
        if hasattr(signal, name):
            asyncio.get_running_loop().add_signal_handler(getattr(signal, name), ended.set)
    try:
        await web.SockSite(runner, listener).start()
        url = f"http://{_LOOPBACK}:{port}/?token={access.token}"
        say(f"The page is at {url} (Ctrl-C ends it)")
        with TemporaryDirectory(prefix="continuity-ui-") as folder:
            if browser:
                await asyncio.to_thread(_open, url, Path(folder))
            await ended.wait()
    finally:
        await routes.close()
        await runner.cleanup()


def _open(url: str, folder: Path) -> None:
    """Open the browser on a private file that leads to the page: everybody on the machine sees the browser's command line."""
    page = folder / "open.html"
    page.touch(mode=0o600)
    page.write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={escape(url)}">'
        f'<title>Session Continuity</title><p><a href="{escape(url)}">Open the page</a>',
        encoding="utf-8",
    )
    webbrowser.open(page.as_uri())

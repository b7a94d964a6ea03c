"""The addresses of the page. Everything slow is done in a thread or a child, so that events go on."""

import asyncio
import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from aiohttp import web

from continuity_conformance.core.errors import ContinuityError
from continuity_conformance.report.files import FILES
from continuity_conformance.report.page import style
from continuity_conformance.ui import commands, show
from continuity_conformance.ui.access import PageAccess, stream_headers
from continuity_conformance.ui.child import Child
from continuity_conformance.ui.form import Form, read_form
from continuity_conformance.ui.history import RunHistory
from continuity_conformance.ui.play import Play

T = TypeVar("T")
_FILES: Final = Path(__file__).parent / "files"
_BODY: Final = 1 << 20
_SANDBOX: Final = {"Content-Security-Policy": "sandbox allow-scripts"}
"""For pages that are files of their own, with a policy of their own: they get no rights of this page."""


class Routes:
    """The handlers, and what they share."""

    def __init__(self, target: str, profile: str, history: RunHistory) -> None:
        self.play = Play(history)
        self._history = history
        self._given = (target, profile)
        self._examining: set[Child] = set()

    def app(self, access: PageAccess) -> web.Application:
        app = web.Application(middlewares=[access.middleware], client_max_size=_BODY)
        app.add_routes(
            [
                web.get("/", self._page),
                web.get("/{name:(ui|style)\\.(js|css)}", self._file),
                web.post("/doctor", self._doctor),
                web.post("/runs", self._run),
                web.post("/stop", self._stop),
                web.get("/events", self._events),
                web.get("/runs", self._earlier),
                web.get("/runs/{run}", self._summary),
                web.get("/runs/{run}/requirements/{id}", self._requirement),
                web.get("/runs/{run}/files/{name}", self._download),
                web.get("/runs/{run}/issues/{number:[0-9]{1,3}}", self._issue),
                web.get("/runs/{run}/since/{before}", self._compare),
            ]
        )
        return app

    async def close(self) -> None:
        """End everything that this page started."""
        self.play.log.close()
        await asyncio.gather(self.play.stop(), *(child.stop() for child in self._examining))

    async def _page(self, _: web.Request) -> web.Response:
        return _html(await _aside(lambda: show.start_page(*self._given)))

    async def _file(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/style.css":
            return web.Response(text=style() + "\n", content_type="text/css")
        path = _FILES / request.match_info["name"]
        if not path.is_file():
            raise web.HTTPNotFound
        return web.FileResponse(path)

    async def _doctor(self, request: web.Request) -> web.Response:
        """The findings of the doctor as it prints them, its error in one line, and the profile that it writes."""
        form = await _form(request)
        with tempfile.TemporaryDirectory(prefix="continuity-ui-") as name:
            folder = Path(name)
            try:
                command = commands.doctor(form, folder)
            except ContinuityError as error:
                return _refused(error)
            async with Child(command, commands.environment(form)) as child:
                self._examining.add(child)
                try:
                    printed = "\n".join([line async for line in child.lines()])
                    _, message = await child.ended()
                finally:
                    self._examining.discard(child)
            written = folder / commands.PROFILE
            profile = written.read_text(encoding="utf-8") if written.is_file() and not form.profile.strip() else None
        findings = json.loads(printed) if printed.startswith("{") else None
        return web.json_response({"findings": findings, "error": message, "profile": profile})

    async def _run(self, request: web.Request) -> web.Response:
        try:
            return web.json_response({"run": self.play.start(await _form(request))}, status=201)
        except ContinuityError as error:
            return _refused(error)

    async def _stop(self, _: web.Request) -> web.Response:
        await self.play.stop()
        return web.json_response({})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        seen = request.headers.get("Last-Event-ID", "")
        answer = web.StreamResponse(headers=stream_headers())
        with suppress(ConnectionResetError):
            await answer.prepare(request)
            async for event in self.play.log.after(int(seen) if seen.isdecimal() else 0):
                text = ":" if event is None else f"id: {event[0]}\ndata: {event[1]}"
                await answer.write(f"{text}\n\n".encode())
        return answer

    async def _earlier(self, _: web.Request) -> web.Response:
        return _html(await _aside(lambda: show.earlier(self._history)))

    async def _summary(self, request: web.Request) -> web.Response:
        run = self._named(request.match_info["run"])
        return _html(await _aside(lambda: show.summary(run, self._history)))

    async def _requirement(self, request: web.Request) -> web.Response:
        run, identity = self._named(request.match_info["run"]), request.match_info["id"]
        shown = await _aside(lambda: show.requirement(run, identity, self._history))
        if shown is None:
            raise web.HTTPNotFound
        return _html(shown)

    async def _download(self, request: web.Request) -> web.StreamResponse:
        folder, name = self._history.folder(self._named(request.match_info["run"])), request.match_info["name"]
        if folder is None or name not in {*FILES, commands.RESULTS} or not (folder / name).is_file():
            raise web.HTTPNotFound
        own = name.endswith(".html") and "download" not in request.query
        return web.FileResponse(folder / name, headers=_SANDBOX if own else _attachment(name))

    async def _issue(self, request: web.Request) -> web.Response:
        run, number = self._named(request.match_info["run"]), int(request.match_info["number"])
        found = await _aside(lambda: show.cause_issue(run, number, self._history))
        if found is None:
            raise web.HTTPNotFound
        name, text = found
        return web.Response(text=text, content_type="text/markdown", headers=_attachment(name))

    async def _compare(self, request: web.Request) -> web.Response:
        runs = [self._named(request.match_info[name]) for name in ("before", "run")]
        page = await _aside(lambda: show.comparison(runs, self._history))
        return web.Response(text=page, content_type="text/html", headers=_SANDBOX)

    def _named(self, run: str) -> str:
        """The name of a run that has results. Raises HTTPNotFound."""
        folder = self._history.folder(run)
        if folder is None or not (folder / commands.RESULTS).is_file():
            raise web.HTTPNotFound
        return run


async def _form(request: web.Request) -> Form:
    """The form. Only the page itself can send JSON: a form of another site cannot."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType
    return read_form(await request.read())


async def _aside(work: Callable[[], T]) -> T:
    return await asyncio.to_thread(work)


def _html(text: str) -> web.Response:
    return web.Response(text=text, content_type="text/html")


def _refused(error: ContinuityError) -> web.Response:
    return web.json_response({"error": str(error)}, status=400)


def _attachment(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}

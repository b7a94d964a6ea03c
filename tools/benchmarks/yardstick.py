"""The servers that the reference server is compared with: a bare aiohttp handler, and the same with one durable insert.

    python tools/benchmarks/yardstick.py --answer FILE [--stream FILE] [--insert DB]

Both read the request and answer with the bytes of the file, whatever they are asked; a stream is written in the pieces of its file. `--insert`: the body of
the request is one row in SQLite, committed to the disk (WAL, synchronous=FULL, as in the reference server) before the answer, one commit a request.
"""

import argparse
import asyncio
import json
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Final

from aiohttp import web

SESSION: Final = "X-Hermes-Session-Id"


class Yardstick:
    """Answers every request with the same bytes."""

    def __init__(self, answer: bytes, pieces: list[str], database: sqlite3.Connection | None) -> None:
        self._answer = answer
        self._pieces = [piece.encode() for piece in pieces]
        self._database = database

    async def plain(self, request: web.Request) -> web.Response:
        self._keep(await request.read())
        headers = {SESSION: request.headers.get(SESSION, ""), "Cache-Control": "no-store"}
        return web.Response(body=self._answer, headers=headers, content_type="application/json")

    async def stream(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {SESSION: request.headers.get(SESSION, ""), "Cache-Control": "no-store"}
        response = web.StreamResponse(headers={**headers, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in self._pieces[:-1]:
            await response.write(piece)
        self._keep(body)
        await response.write(self._pieces[-1])
        return response

    def _keep(self, body: bytes) -> None:
        if self._database is not None:
            self._database.execute("INSERT INTO turns (data) VALUES (?)", (body,))


def opened(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS turns (number INTEGER PRIMARY KEY, data TEXT NOT NULL)")
    return connection


async def serve(yardstick: Yardstick) -> None:
    app = web.Application()
    app.add_routes([web.post("/plain", yardstick.plain), web.post("/stream", yardstick.stream)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    sys.stdout.write(f"listening on http://127.0.0.1:{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await stop.wait()
    await runner.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answer", type=Path, required=True, help="the body of a plain answer")
    parser.add_argument("--stream", type=Path, required=True, help="the pieces of a streamed answer, as a JSON list")
    parser.add_argument("--insert", metavar="DB", help="insert each request into this database")
    given = parser.parse_args()
    database = opened(given.insert) if given.insert else None
    asyncio.run(serve(Yardstick(given.answer.read_bytes(), json.loads(given.stream.read_text("utf-8")), database)))


if __name__ == "__main__":
    main()

"""Servers that attack the kit itself. Each answers the first requests like a plausible server, and then attacks. Start one with `python overwhelming.py NAME [CALM]`.

`CALM`: how many requests are answered normally before the attack begins.
"""

import asyncio
import gzip
import json
import sys

from aiohttp import web
from hostile import HEADER, completion, valid

_PIECE = b" " * 65_536
_BOMB = gzip.compress(b'{"a": "' + b" " * 200_000_000 + b'"}', 9)


async def endless_stream(request: web.Request) -> web.StreamResponse:
    """Events without end, whatever was asked."""
    stream = web.StreamResponse(headers={HEADER: "s", "Content-Type": "text/event-stream"})
    await stream.prepare(request)
    chunk = {
        **completion("x"),
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {"content": "on and on "}, "finish_reason": None}],
    }
    event = f"data: {json.dumps(chunk)}\n\n".encode() * 50
    while True:
        await stream.write(event)


async def endless_line(request: web.Request) -> web.StreamResponse:
    """One event whose line never ends."""
    stream = web.StreamResponse(headers={HEADER: "s", "Content-Type": "text/event-stream"})
    await stream.prepare(request)
    await stream.write(b"data: ")
    while True:
        await stream.write(_PIECE)


async def endless_json(request: web.Request) -> web.StreamResponse:
    stream = web.StreamResponse(headers={HEADER: "s", "Content-Type": "application/json"})
    await stream.prepare(request)
    await stream.write(b'{"id": "x", "choices": [')
    while True:
        await stream.write(b"[]," * 20_000)


async def huge_body(request: web.Request) -> web.StreamResponse:
    """Two gigabytes, announced by their length."""
    stream = web.StreamResponse(headers={HEADER: "s", "Content-Type": "application/json", "Content-Length": str(2**31)})
    await stream.prepare(request)
    for _ in range(2**31 // len(_PIECE)):
        await stream.write(_PIECE)
    return stream


async def one_byte_per_second(request: web.Request) -> web.StreamResponse:
    stream = web.StreamResponse(headers={HEADER: "s", "Content-Type": "application/json"})
    await stream.prepare(request)
    while True:
        await stream.write(b" ")
        await asyncio.sleep(1)


async def gzip_bomb(_: web.Request) -> web.StreamResponse:
    """200 kilobytes that become 200 megabytes."""
    headers = {HEADER: "s", "Content-Type": "application/json", "Content-Encoding": "gzip"}
    return web.Response(body=_BOMB, headers=headers)


async def header_flood(request: web.Request) -> web.StreamResponse:
    """90 header fields of 4 kilobytes, beside an answer that is right."""
    return await valid(request, "x", {HEADER: "s", **{f"X-Flood-{k}": "f" * 4_000 for k in range(90)}})


async def deep_json(_: web.Request) -> web.StreamResponse:
    return web.Response(text='{"id": ' + "[" * 500_000, content_type="application/json", headers={HEADER: "s"})


async def long_numbers(_: web.Request) -> web.StreamResponse:
    """Numbers of more digits than Python reads."""
    body = json.dumps(completion("x")).replace('"created": ', f'"created": {"9" * 5_000}')
    return web.Response(text=body, content_type="application/json", headers={HEADER: "s"})


async def redirect(request: web.Request) -> web.StreamResponse:
    """To another address, which must never see a key."""
    return web.Response(status=307, headers={"Location": f"{sys.argv[3]}{request.path}"})


async def dies(_: web.Request) -> web.StreamResponse:
    sys.exit(1)


SERVERS = {
    "endless stream": endless_stream,
    "endless line": endless_line,
    "endless JSON": endless_json,
    "2 GB body": huge_body,
    "one byte per second": one_byte_per_second,
    "gzip bomb": gzip_bomb,
    "header flood": header_flood,
    "deep JSON": deep_json,
    "long numbers": long_numbers,
    "redirect": redirect,
    "dies": dies,
}


def attacking(name: str, calm: int) -> web.Application:
    answered = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal answered
        answered += 1
        if answered <= calm:
            return await valid(request, "calm", {HEADER: request.headers.get(HEADER, "session")})
        return await SERVERS[name](request)

    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", answer)
    return app


async def main(name: str, calm: str = "6", *_: str) -> None:
    runner = web.AppRunner(attacking(name, int(calm)), access_log=None, shutdown_timeout=0.1, max_line_size=2**16)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"listening on http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

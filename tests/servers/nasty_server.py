"""A server whose answers attack the reader of a report: HTML, Markdown, shell, terminal and CI commands. Start it with `python nasty_server.py`."""

import asyncio
import json

from aiohttp import web

SCRIPT = "<script>window.pwned=1</script><img src=x onerror=window.pwned=1><svg/onload=window.pwned=1>"
CLOSERS = "]]> --> </script></style></pre></details></textarea>\"' onmouseover=window.pwned=1 x='"
MARKDOWN = "| a | `b` ``c`` [click](javascript:alert(1)) ![i](http://127.0.0.1:9/i.png) @everyone <b>bold</b> https://127.0.0.1:9/"
TERMINAL = "\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b31m\r\x08\x7f"
ORDER = "\u202eevil\u2066\u200f\u2028\u2029\ufffe"
LINES = "one\n## two\n- [x] three\n```\nfour\n```\n"
EVERYTHING = f"{SCRIPT} {CLOSERS} {MARKDOWN} {TERMINAL} {ORDER} {LINES}"
IN_HEADER = (SCRIPT + CLOSERS + MARKDOWN).replace("\n", " ")


def body(request: web.Request) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": EVERYTHING}, "finish_reason": "stop"}
    completion = {"id": f"chatcmpl-{EVERYTHING}", "object": "chat.completion", "created": 1, "model": "m"}
    text = json.dumps({**completion, "choices": [choice], "session": {"id": EVERYTHING}})
    # Not JSON at all, so that nothing in it is escaped.
    raw = b"\xff\xfe\xc3\x28" + EVERYTHING.encode() + b"\x1b[2J\xed\xa0\x80"
    return raw if "responses" in request.path else text.encode()


async def answer(request: web.Request) -> web.Response:
    headers = {"X-Hermes-Session-Id": IN_HEADER, "X-Huge": "h" * 7000, "Content-Type": "application/json"}
    return web.Response(body=body(request), headers=headers)


async def main() -> None:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"listening on http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())

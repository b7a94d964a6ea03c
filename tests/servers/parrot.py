"""A server that answers 200 to everything and repeats each secret that it receives, in many encodings."""

import asyncio
import base64
import json
from urllib.parse import quote

from aiohttp import web


def repeated(request: web.Request) -> list[str]:
    values = [value for name, value in request.headers.items() if name not in {"Host", "User-Agent", "Accept"}]
    bare = [value.partition(" ")[2] for value in values if " " in value]
    return [form for value in (*values, *bare) for form in forms(value)]


def forms(value: str) -> tuple[str, ...]:
    plain = value.encode("utf-8", "surrogateescape")
    shown = plain.decode("utf-8", "replace")
    encoded = (base64.b64encode(plain).decode(), base64.b64encode(b"Bearer " + plain).decode())
    return (shown, quote(shown, safe=""), quote(shown), json.dumps(shown), *encoded)


async def answer(request: web.Request) -> web.Response:
    said = repeated(request)
    message = {"role": "assistant", "content": " ".join(said)}
    body = {"id": said[:1], "choices": [{"message": message}], "error": {"message": json.dumps(said)}, "said": said}
    headers = {
        "X-Hermes-Session-Id": quote(said[0], safe="") if said else "none",
        "X-Repeated": quote(" ".join(said))[:4000],
        "X-Refresh-Token": "parrots-own-token",
        "Set-Cookie": "sid=parrots-own-cookie; Path=/",
    }
    return web.json_response(body, headers=headers)


async def main() -> None:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())

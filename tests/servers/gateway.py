"""A gateway in front of another server: it has a path prefix, TLS, and its own header for keys. It runs as a process.

`python gateway.py UPSTREAM [--prefix /gateway] [--cert FILE --private FILE] [--key-field X-Api-Key] [--port N]`
"""

import argparse
import asyncio
import contextlib
import ssl

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

HOP = {"host", "content-length", "transfer-encoding", "connection"}


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("upstream")
    parser.add_argument("--prefix", default="")
    parser.add_argument("--cert")
    parser.add_argument("--private")
    parser.add_argument("--key-field", default="Authorization")
    return parser.parse_args()


class Gateway:
    def __init__(self, options: argparse.Namespace, client: aiohttp.ClientSession) -> None:
        self.options = options
        self.client = client

    async def passed_on(self, request: web.Request) -> web.StreamResponse:
        prefix = self.options.prefix
        if not request.raw_path.startswith(f"{prefix}/"):
            return web.Response(status=404, text="<html><title>404 Not Found</title></html>", content_type="text/html")
        fields = [(name, value) for name, value in request.headers.items() if name.lower() not in HOP]
        if self.options.key_field != "Authorization":
            fields = [self.translated(*pair) for pair in fields if pair[0].lower() != "authorization"]
        url = self.options.upstream + request.raw_path.removeprefix(prefix)
        async with self.client.request(
            request.method, URL(url, encoded=True), headers=fields, data=await request.read()
        ) as answer:
            kept = [(name, value) for name, value in answer.headers.items() if name.lower() not in HOP]
            passed = web.StreamResponse(status=answer.status, headers=CIMultiDict(kept))
            await passed.prepare(request)
            async for piece in answer.content.iter_any():
                await passed.write(piece)
            await passed.write_eof()
            return passed

    def translated(self, name: str, value: str) -> tuple[str, str]:
        """A key in the field that the server reads. aiohttp leaves out bytes that are no UTF-8, which would make a right key of a wrong one."""
        if name.lower() != self.options.key_field.lower():
            return name, value
        return "Authorization", "Bearer " + value.encode("utf-8", "surrogateescape").decode("latin-1")


async def main() -> None:
    options = read_arguments()
    tls = None
    if options.cert:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(options.cert, options.private)
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as client:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", r"/{path:[\s\S]*}", Gateway(options, client).passed_on)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        port = runner.addresses[0][1]
        print(f"listening on {'https' if tls else 'http'}://127.0.0.1:{port}{options.prefix}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())

"""Servers of a few lines, in threads of the test: pages, ports that are none of HTTP, and one that keeps a header to itself."""

import json
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

KEYS = {"ALICES_KEY": "key-of-alice-0123456789", "BOBS_KEY": "key-of-bob-0123456789"}
"""What the servers that want a key take, by the names of environment variables."""


class Page(BaseHTTPRequestHandler):
    """A web page, whatever is asked."""

    def answer(self) -> None:
        self.reply(200, "text/html", b"<html><title>Welcome</title><body>It works!</body></html>")

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def reply(self, status: int, kind: str, body: bytes, **fields: str) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Shy(Page):
    """A chat endpoint alone, with a header of its own that nobody announces."""

    def answer(self) -> None:
        self.reply(404, "application/json", b'{"error": {"message": "nothing here"}}')

    def do_POST(self) -> None:
        if self.path != "/v1/chat/completions":
            return self.answer()
        choice = {"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}
        body = {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": "chat.completion", "choices": [choice]}
        session = self.headers.get("X-My-Session", "minted-1")
        return self.reply(200, "application/json", json.dumps(body).encode(), X_My_Session=session)


class Elsewhere(Shy):
    """Sessions under another path, each in a field of the answer, that can be deleted."""

    deleted: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        path, _, session = self.path.rpartition("/")
        if path != "/api/sessions":
            return self.answer()
        return self.reply(200, "application/json", json.dumps({"session": {"id": session}}).encode())

    def do_DELETE(self) -> None:
        path, _, session = self.path.rpartition("/")
        if path != "/api/sessions":
            return self.answer()
        self.deleted.append(session)
        return self.reply(200, "application/json", b'{"deleted": true}')


class Moved(Page):
    def answer(self) -> None:
        self.reply(301, "text/plain", b"", Location="https://gateway.example/v1")


class Stuck(Shy):
    """It lists its models, and takes longer for a turn than anybody waits."""

    def do_POST(self) -> None:
        time.sleep(1.5)
        self.close_connection = True


class Failing(Shy):
    def do_POST(self) -> None:
        self.reply(400, "application/json", b'{"error": {"message": "there is no model default"}}')


@contextmanager
def http_server(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def silent_port() -> Iterator[tuple[str, socket.socket]]:
    """A port that takes connections, and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", listener


@contextmanager
def greeting_port(words: bytes) -> Iterator[str]:
    """A port that speaks first, as that of a mail server does."""
    with silent_port() as (url, listener):
        threading.Thread(target=_greet, args=(listener, words), daemon=True).start()
        yield url


def _greet(listener: socket.socket, words: bytes) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.sendall(words)

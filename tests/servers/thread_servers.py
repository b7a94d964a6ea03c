"""Small servers that run in threads of the test: web pages, ports that do not speak HTTP, and a server that does not announce its session header."""

import json
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, NamedTuple

KEYS = {"ALICES_KEY": "key-of-alice-0123456789", "BOBS_KEY": "key-of-bob-0123456789"}
"""What the servers that want a key take, by the names of environment variables."""


class Asked(NamedTuple):
    """A request as it came in."""

    method: str
    path: str
    fields: dict[str, str]


class Page(BaseHTTPRequestHandler):
    """A web page, whatever is asked."""

    asked: ClassVar[list[Asked]] = []

    def answer(self) -> None:
        self.reply(200, "text/html", b"<html><title>Welcome</title><body>It works!</body></html>")

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def reply(self, status: int, kind: str, body: bytes, **fields: str) -> None:
        self.asked.append(Asked(self.command, self.path, dict(self.headers.items())))
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


class Bare(Page):
    """A chat endpoint alone, which tells no session."""

    def answer(self) -> None:
        self.reply(404, "application/json", b'{"error": {"message": "nothing here"}}')

    def do_POST(self) -> None:
        if self.path != "/v1/chat/completions":
            return self.answer()
        choice = {"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}
        body = {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": "chat.completion", "choices": [choice]}
        return self.reply(200, "application/json", json.dumps(body).encode(), **self.told())

    def told(self) -> dict[str, str]:
        return {}


class Shy(Bare):
    """The same with a header of its own that nobody announces."""

    def told(self) -> dict[str, str]:
        return {"X_My_Session": self.headers.get("X-My-Session", "minted-1")}


class Lists(Page):
    """A list of models, and nothing else."""

    def answer(self) -> None:
        self.reply(404, "application/json", b'{"error": {"message": "nothing here"}}')

    def do_GET(self) -> None:
        if self.path != "/v1/models":
            return self.answer()
        return self.reply(200, "application/json", b'{"object": "list", "data": [{"id": "agent-1"}]}')


class Elsewhere(Shy):
    """Sessions under another path, each in a field of the answer, that can be deleted."""

    deleted: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        path, _, session = self.path.rpartition("/")
        if path != "/api/sessions" or session in self.deleted:
            return self.answer()
        return self.reply(200, "application/json", json.dumps({"session": {"id": session}}).encode())

    def do_DELETE(self) -> None:
        path, _, session = self.path.rpartition("/")
        if path != "/api/sessions":
            return self.answer()
        self.deleted.append(session)
        return self.reply(200, "application/json", b'{"deleted": true}')


class Minting(Elsewhere):
    """Every answer tells another session, and all of them can be deleted."""

    def told(self) -> dict[str, str]:
        return {"X_Hermes_Session_Id": f"minted-{uuid.uuid4().hex}"}


class Moved(Page):
    def answer(self) -> None:
        self.reply(301, "text/plain", b"", Location="https://gateway.example/v1")


class Stuck(Shy):
    """It lists its models, and takes longer for a turn than anybody waits."""

    def do_POST(self) -> None:
        time.sleep(1.5)
        self.close_connection = True


class SlowModels(Shy):
    """It answers turns at once, and takes longer for its list of models than anybody waits."""

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            time.sleep(1.5)
        self.answer()


class Failing(Shy):
    def do_POST(self) -> None:
        self.reply(400, "application/json", b'{"error": {"message": "there is no model default"}}')


class InTheBody(Bare):
    """A field of the body names the session. Every answer has a random request id, too."""

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        asked = json.loads(self.rfile.read(length))
        del self.headers["Content-Length"]
        if self.path != "/v1/chat/completions":
            return self.answer()
        thread = asked.get("thread_key") or uuid.uuid4().hex
        choice = {"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}
        body = {"id": f"c-{uuid.uuid4().hex}", "object": "chat.completion", "choices": [choice], "thread_key": thread}
        request_id = self.headers.get("X-Request-Id", uuid.uuid4().hex)
        return self.reply(200, "application/json", json.dumps(body).encode(), X_Request_Id=request_id)


class UnusualRefusal(Bare):
    """A missing key is 401, a wrong one is 400."""

    statuses: ClassVar[dict[str | None, int]] = {None: 401, f"Bearer {KEYS['ALICES_KEY']}": 200}

    def do_POST(self) -> None:
        status = self.statuses.get(self.headers.get("Authorization"), 400)
        if status == 200:
            return super().do_POST()
        return self.reply(status, "application/json", b'{"error": {"message": "no"}}')


class Welcoming(Page):
    """A page for every request but a turn, which it answers."""

    def do_POST(self) -> None:
        if self.path != "/v1/chat/completions":
            return self.answer()
        return Bare.do_POST(self)  # type: ignore[arg-type]

    def told(self) -> dict[str, str]:
        return {}


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

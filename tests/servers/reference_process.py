"""The reference server in a process of its own, and the requests that tests send to it."""

import contextlib
import json
import subprocess
import sys
import urllib.error
import urllib.request
from urllib.parse import quote

HEADER = "X-Hermes-Session-Id"
TOKEN = "control-token"
KEYS = ("--key", "alice=key-of-alice", "--key", "bob=key-of-bob")


class Server:
    """A server process, and what a test does with it."""

    def __init__(self, *arguments):
        self._arguments = arguments
        self.start()

    def start(self):
        command = [sys.executable, "-m", "continuity_server", "--port", "0", "--controls", TOKEN, *self._arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split()[-1]

    def stop(self):
        self.process.terminate()
        _, self.log = self.process.communicate(timeout=10)
        return self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.communicate(timeout=10)

    def request(self, method, path, body=None, headers=None, key="key-of-alice"):
        """One request without any client's help: (status, headers, JSON)."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        said = {
            "Content-Type": "application/json",
            **({"Authorization": f"Bearer {key}"} if key else {}),
            **(headers or {}),
        }
        request = urllib.request.Request(self.url + path, data=data, headers=said, method=method)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.headers, _json(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, _json(error.read())

    def control(self, name, **body):
        status, _, said = self.request("POST", f"/conformance/v1/{name}", body, {"X-Conformance-Token": TOKEN})
        assert status == 200, said
        return said

    @contextlib.contextmanager
    def broken(self, what):
        self.control("fault", what=what, on=True)
        yield
        self.control("fault", what=what, on=False)

    def chat(self, text, session=None, key="key-of-alice", headers=None, **body):
        """A chat turn: (status, headers, JSON)."""
        messages = body.pop("messages", None) or [{"role": "user", "content": text}]
        said = {**({HEADER: session} if session else {}), **(headers or {})}
        return self.request("POST", "/v1/chat/completions", {"model": "m", "messages": messages, **body}, said, key)

    def respond(self, text, key="key-of-alice", headers=None, **body):
        return self.request("POST", "/v1/responses", {"model": "m", "input": text, **body}, headers, key)

    def stored(self, session):
        _, _, body = self.request("GET", f"/v1/sessions/{quote(session, safe='')}/messages")
        return [(message["role"], message.get("content")) for message in body["data"]]


def _json(raw):
    return json.loads(raw) if raw[:1] in (b"{", b"[") else raw.decode()


def said(body):
    """The text of an answer of either endpoint."""
    if body["object"] == "chat.completion":
        return body["choices"][0]["message"]["content"]
    return body["output"][0]["content"][0]["text"]


@contextlib.contextmanager
def running(*arguments):
    server = Server(*arguments)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()

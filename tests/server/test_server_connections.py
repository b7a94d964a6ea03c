"""Connections: how many are served at a time, how long each may take, and how much it may send. Real processes, and real sockets."""

import asyncio
import contextlib
import json
import resource
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from reference_process import HEADER, KEYS, running
from scripted_model import Hold, ScriptedModel

from continuity_server import settings as of_server
from continuity_server.http import request as requests
from continuity_server.server import Parts, serving
from continuity_server.settings import Settings, parse

FILES = 256
HALF_A_HEADER = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-"
HALF_A_BODY = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"


def descriptors(server):
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


@contextlib.contextmanager
def connections(server, count, sent=b""):
    """So many connections, each of which has sent these bytes and sends no more."""
    with contextlib.ExitStack() as stack:
        address = (urlsplit(server.url).hostname, urlsplit(server.url).port)
        for _ in range(count):
            connection = stack.enter_context(socket.create_connection(address))
            connection.sendall(sent)
        yield


def wait_until(condition, seconds=10.0):
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)
    assert condition()


@pytest.mark.parametrize("sent", [b"", HALF_A_HEADER], ids=["nothing", "half a header"])
def test_hundreds_of_connections_that_do_nothing_keep_nobody_out(sent, tmp_path):
    with running("--db", str(tmp_path / "c.db"), *KEYS) as server:
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (FILES, FILES))
        before = descriptors(server)
        with connections(server, 400, sent):
            answers = [server.request("GET", "/health")[0], server.chat("red", "s")[0]]
            most = descriptors(server)
        wait_until(lambda: descriptors(server) <= before + 4)
        answers += [server.request("GET", "/health")[0], server.chat("blue", "s")[0]]
        stored = server.stored("s")
        server.stop()

    assert answers == [200] * 4
    assert len(stored) == 4
    assert most < FILES
    assert "others wait (--max-connections)" in server.log
    assert len(server.log.splitlines()) < 10


def test_half_bodies_keep_their_places_and_the_server_works_again_when_they_are_gone(tmp_path):
    with running("--db", str(tmp_path / "c.db")) as server:
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (FILES, FILES))
        with connections(server, 400, HALF_A_BODY):
            wait_until(lambda: descriptors(server) > FILES // 3)
            most = descriptors(server)
        answers = [server.request("GET", "/health", key=None)[0], server.chat("red", "s", key=None)[0]]
        server.stop()

    assert most < FILES
    assert answers == [200, 200]
    assert len(server.log.splitlines()) < 10


def test_more_clients_than_places_are_all_served(tmp_path):
    def turns(client):
        return [server.chat(f"red {number}", f"s{client}", key=None)[0] for number in range(3)]

    with (
        running("--db", str(tmp_path / "c.db"), "--max-connections", "8") as server,
        ThreadPoolExecutor(60) as pool,
    ):
        answered = list(pool.map(turns, range(60)))

    assert answered == [[200, 200, 200]] * 60


def test_turns_keep_their_places_and_the_next_one_waits_for_them(model):
    holds = [Hold(), Hold()]
    with (
        running("--db", ":memory:", "--model", model.url, "--max-connections", "2") as server,
        ThreadPoolExecutor(3) as pool,
    ):
        model.will(*holds)
        turns = [pool.submit(server.chat, "red", f"s{number}", None) for number in range(2)]
        for hold in holds:
            assert hold.asked.wait(10)
        health = pool.submit(server.request, "GET", "/health", key=None)
        time.sleep(1.5)
        waits = not health.done()
        for hold in holds:
            hold.released.set()

        assert [turn.result()[0] for turn in turns] == [200, 200]
        assert health.result()[0] == 200
        assert waits


def test_a_bound_above_the_open_files_is_warned_of_and_survived(tmp_path):
    with running("--db", str(tmp_path / "c.db"), "--max-connections", "100000000") as server:
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (64, 64))
        with connections(server, 200):
            wait_until(lambda: descriptors(server) >= 60)
        wait_until(lambda: descriptors(server) < 32)
        answers = [server.request("GET", "/health", key=None)[0], server.chat("red", "s", key=None)[0]]
        server.stop()

    assert answers == [200, 200]
    assert "--max-connections 100000000 is too much for a process that may open" in server.log
    assert "no connection can be accepted now: Too many open files" in server.log
    assert len(server.log.splitlines()) < 10


@pytest.mark.parametrize(("files", "most"), [(20, 1), (256, 96), (1024, 480), (1_000_000, 10_000)], ids=str)
def test_half_of_the_open_files_are_for_clients_because_a_turn_is_a_connection_to_the_model_too(
    files, most, monkeypatch
):
    monkeypatch.setattr(of_server, "_open_files", lambda: files)

    assert Settings().most_connections == most
    assert parse(["--max-connections", "7"]).most_connections == 7


# How long a connection may take


async def _answer_after(sent, seconds):
    """What a server in this process answers to a connection that sends this and no more, and whether it closes it."""
    async with serving(Settings(db=":memory:"), Parts()) as url:
        reader, writer = await asyncio.open_connection(urlsplit(url).hostname, urlsplit(url).port)
        writer.write(sent)
        async with asyncio.timeout(seconds):
            answer = await reader.read()
        writer.close()
        return answer


@pytest.mark.parametrize("sent", [b"", HALF_A_HEADER], ids=["nothing", "half a header"])
def test_a_connection_without_a_whole_request_is_closed_after_a_while(sent, monkeypatch):
    monkeypatch.setattr("continuity_server.server._IDLE_SECONDS", 0.5)

    assert asyncio.run(_answer_after(sent, 10)) == b""


def test_a_body_that_does_not_arrive_is_refused_after_a_while(monkeypatch):
    monkeypatch.setattr(requests, "_BODY_SECONDS", 0.5)
    answer = asyncio.run(_answer_after(HALF_A_BODY, 30))

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"The body did not arrive within 0.5 s" in answer


class _Endless(ScriptedModel):
    """A model whose streams never end: pieces of text, or of the arguments of a tool call."""

    async def _stream(self, request, step):  # noqa: ARG002 - it says the same to everybody
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        piece = {"content": "x" * 50_000}
        if "tools" in str(self.calls[-1]["messages"]):
            piece = {"tool_calls": [{"index": 0, "function": {"name": "", "arguments": "x" * 50_000}}]}
        chunk = f"data: {json.dumps({'choices': [{'index': 0, 'delta': piece, 'finish_reason': None}]})}\n\n".encode()
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(chunk)
        return response


def _memory(server):
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) // 1024


def test_readers_that_stop_cost_a_bounded_amount_of_memory():
    body = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "red"}]}'
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with _Endless() as model, running("--db", ":memory:", "--model", model.url) as server:
        before = _memory(server)
        with connections(server, 30, head.encode() + body):
            time.sleep(4)
            most = _memory(server)

    assert most - before < 200


@pytest.mark.parametrize("what", ["text", "tools"])
def test_a_stream_of_the_model_that_never_ends_is_a_failure_of_the_model(what):
    with _Endless() as model, running("--db", ":memory:", "--model", model.url) as server:
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": what}]}
        status, _, answer = server.request("POST", "/v1/chat/completions", body, {HEADER: "s"}, key=None)
        told = answer if isinstance(answer, str) else json.dumps(answer)

    assert status == (200 if what == "text" else 502)
    assert "The model's answer is too large." in told


# How much a request may send


@pytest.mark.parametrize(
    "fields",
    [b"X-Long: " + b"x" * 20_000 + b"\r\n", b"".join(b"X-%d: x\r\n" % number for number in range(2_000))],
    ids=["a long field", "many fields"],
)
def test_header_fields_have_a_bound(server, fields):
    address = (urlsplit(server.url).hostname, urlsplit(server.url).port)
    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n" + fields + b"\r\n")
        answer = connection.recv(4096)

    assert b" 400 " in answer.partition(b"\r\n")[0]
    assert server.request("GET", "/health")[0] == 200

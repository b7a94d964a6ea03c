"""Peers that mean no good, or stop in the middle: web pages, slow readers, odd values. And secrets, which others on the machine do not see."""

import json
import os
import socket
import stat
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from reference_process import HEADER, KEYS, running
from scripted_model import ScriptedModel

from continuity_server.settings import Key, Settings

CONTEXT = ("--context", "100000000")


@pytest.fixture(scope="module")
def keyless():
    with running("--db", ":memory:", "--cors", "https://app.example") as server:
        yield server


def ask(server, headers, body=b'{"model": "m", "messages": [{"role": "user", "content": "red"}]}'):
    return server.request("POST", "/v1/chat/completions", body, headers, key=None)[0]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:1234"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example:8642"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Origin": "https://app.example"}, 200),
    ],
)
def test_a_server_without_keys_answers_no_page_of_another_site(keyless, headers, status):
    assert ask(keyless, headers) == status


def test_a_server_with_keys_does_not_mind_its_name(server):
    assert server.chat("red", "s", headers={"Host": "any.example", "Origin": "https://any.example"})[0] == 200


def raw(server, request):
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        connection.sendall(request)
        return connection.recv(4096).split(b"\r\n", 1)[0]


def test_what_a_page_sends_without_a_type_is_no_json(keyless):
    body = b'{"model": "m", "messages": [{"role": "user", "content": "red"}]}'
    plain = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n" % len(body)

    assert b" 200 " in raw(keyless, plain + b"\r\n" + body)
    assert b" 415 " in raw(keyless, plain + b"Origin: https://app.example\r\n\r\n" + body)


def test_values_that_no_server_can_use_are_400(server):
    key = b"GET /v1/sessions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer key-of-alice\r\n\r\n"
    turn = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer key-of-alice\r\nIdempotency-Key: \xff\xfe\r\nContent-Type: application/json\r\n"
    body = b'{"model": "m", "messages": [{"role": "user", "content": "red"}]}'

    assert b" 400 " in raw(server, key.replace(b"sessions ", b"sessions?limit=" + b"1" * 5000 + b" "))
    assert b" 400 " in raw(server, turn + b"Content-Length: %d\r\n\r\n" % len(body) + body)


class _Talkative(ScriptedModel):
    """A model whose streams are long: 6 MB in pieces of 50 kB."""

    async def _stream(self, request, step):  # noqa: ARG002 - it says the same to everybody
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for text in ["x" * 50_000] * 120:
            piece = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
            await response.write(f"data: {json.dumps(piece)}\n\n".encode())
        await response.write(b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n')
        return response


def test_a_reader_that_stops_does_not_keep_its_session(tmp_path):
    body = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "red"}]}'
    fields = {"Host": "x", "Authorization": "Bearer key-of-alice", "Content-Type": "application/json", HEADER: "s"}
    lines = [f"{name}: {value}" for name, value in {**fields, "Content-Length": len(body)}.items()]
    head = "\r\n".join(["POST /v1/chat/completions HTTP/1.1", *lines, "", ""]).encode()
    with (
        _Talkative() as model,
        running("--db", str(tmp_path / "c.db"), *KEYS, "--model", model.url, *CONTEXT) as server,
    ):
        parts = urlsplit(server.url)
        with socket.socket() as stopped:
            stopped.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stopped.connect((parts.hostname, parts.port))
            stopped.sendall(head + body)
            time.sleep(1)

            assert _patient_chat(server) == 200
            assert len(server.stored("s")) == 4


def _patient_chat(server):
    body = b'{"model": "m", "messages": [{"role": "user", "content": "blue"}]}'
    headers = {"Content-Type": "application/json", "Authorization": "Bearer key-of-alice", HEADER: "s"}
    request = urllib.request.Request(f"{server.url}/v1/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=25) as answer:
        return answer.status


def test_the_files_of_a_server_are_readable_for_its_user_only(tmp_path):
    with running("--db", str(tmp_path / "c.db"), *KEYS) as server:
        assert server.chat("red", "s")[0] == 200
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) & 0o077 for file in tmp_path.iterdir()}

    assert modes.keys() >= {"c.db", "c.db-wal", "c.db-turns"}
    assert set(modes.values()) == {0}


def started(arguments, environment):
    command = [sys.executable, "-m", "continuity_server", "--port", "0", "--db", ":memory:", *arguments]
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.readline()
    shown = Path(f"/proc/{process.pid}/cmdline").read_text()
    process.terminate()
    return shown, process.communicate(timeout=10)[1]


def test_keys_come_from_a_file_or_the_environment(tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("# of the team\nalice=key-of-alice\n\nbob=key-of-bob\n")
    with running("--db", ":memory:", "--key-file", str(keys)) as server:
        assert server.chat("red", "s")[0] == 200
        assert server.chat("red", "s", key="key-of-bob")[0] == 200
        assert server.chat("red", "s", key="key-of-nobody")[0] == 401
    shown, log = started(
        [], {"CONTINUITY_KEYS": "alice=key-of-alice\nbob=key-of-alice", "CONTINUITY_CONTROLS": "t0ken"}
    )

    assert "key-of" not in shown + log
    assert "t0ken" not in shown + log
    assert "one secret is given to several principals" in log


def test_an_address_that_others_reach_without_keys_is_warned_of():
    everywhere = ".".join("0000")

    assert "it has no keys" in " ".join(Settings(host=everywhere).warnings())
    assert list(Settings(host=everywhere, keys=(Key("alice", "secret"),)).warnings()) == []
    assert list(Settings().warnings()) == []

"""Storage that fails under a running server: it refuses what it cannot keep, says so in /health and in the log, and answers everything else at once."""

import os
import resource
import sqlite3
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from reference_process import KEYS, running
from scripted_model import ScriptedModel

SLOW_DISK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
static int slowly(const char *name, int fd) {
    int (*real)(int) = dlsym(RTLD_NEXT, name);
    usleep(500000);
    return real(fd);
}
int fsync(int fd) { return slowly("fsync", fd); }
int fdatasync(int fd) { return slowly("fdatasync", fd); }
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "c.db"


@pytest.fixture
def model():
    with ScriptedModel() as model:
        yield model


@pytest.fixture
def server(path, model):
    with running("--db", str(path), *KEYS, "--model", model.url) as server:
        yield server


def health(server):
    began = time.monotonic()
    status, _, body = server.request("GET", "/health", key=None)
    assert status == 200
    return body, time.monotonic() - began


def slowest_health(server, seconds):
    until, slowest = time.monotonic() + seconds, 0.0
    while time.monotonic() < until:
        slowest = max(slowest, health(server)[1])
        time.sleep(0.01)
    return slowest


def users(server, session):
    status, _, body = server.request("GET", f"/v1/sessions/{session}/messages")
    return [message["content"] for message in body["data"] if message["role"] == "user"] if status == 200 else []


def test_a_locked_database_stops_no_other_request(server, path):
    with closing(sqlite3.connect(path, isolation_level=None)) as other, ThreadPoolExecutor(4) as pool:
        other.execute("BEGIN IMMEDIATE")
        turns = [pool.submit(server.chat, f"turn {number}", "s") for number in range(4)]
        slowest = slowest_health(server, 2)
        said, _ = health(server)
        other.execute("ROLLBACK")
        statuses = [turn.result()[0] for turn in turns]

    assert slowest < 0.5
    assert said == {"status": "degraded", "store": ["written"]}
    assert statuses == [200] * 4
    assert health(server)[0] == {"status": "ok"}


def test_a_database_that_stays_locked_is_a_503_and_then_works_again(server, path, model):
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        status, _, body = server.chat("red", "s")
        other.execute("ROLLBACK")

    assert (status, body["error"]["code"]) == (503, "history_unavailable")
    assert model.calls == []
    assert server.chat("blue", "s")[0] == 200
    assert users(server, "s") == ["blue"]


def test_a_slow_disk_stops_no_other_request(path, tmp_path, monkeypatch):
    shim = tmp_path / "slow.so"
    (tmp_path / "slow.c").write_text(SLOW_DISK)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, tmp_path / "slow.c", "-ldl"], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(shim))
    with running("--db", str(path), *KEYS) as server, ThreadPoolExecutor(100) as pool:
        monkeypatch.delenv("LD_PRELOAD")
        began = time.monotonic()
        turns = [pool.submit(server.chat, "x" * 5000, f"s{number}") for number in range(300)]
        slowest = slowest_health(server, 2)
        statuses = {turn.result()[0] for turn in turns}

    assert time.monotonic() - began > 2
    assert statuses == {200}
    assert slowest < 0.45


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_no_turn_is_acknowledged_into_a_file_that_was_deleted(server, path, suffix):
    assert server.chat("red", "s")[0] == 200
    path.with_name(path.name + suffix).unlink()

    assert server.chat("blue", "s")[0] == 503
    assert health(server)[0] == {"status": "degraded", "store": ["written"]}


def test_a_file_that_is_put_back_is_used_again(server, path, tmp_path):
    assert server.chat("red", "s")[0] == 200
    path.rename(tmp_path / "elsewhere.db")
    assert server.chat("blue", "s")[0] == 503
    (tmp_path / "elsewhere.db").rename(path)

    assert server.chat("green", "s")[0] == 200
    assert users(server, "s") == ["red", "green"]
    assert health(server)[0] == {"status": "ok"}


def test_no_turn_is_acknowledged_into_a_log_that_was_emptied(server, path):
    assert server.chat("red", "s")[0] == 200
    os.truncate(path.with_name("c.db-wal"), 0)

    assert [server.chat("blue", "s")[0] for _ in range(2)] == [503, 503]


def test_a_failure_of_the_store_is_logged_once_and_so_is_its_end(server):
    with server.broken("write"):
        assert [server.chat("red", "s")[0] for _ in range(3)] == [503] * 3
        assert health(server)[0] == {"status": "degraded", "store": ["written"]}
    assert server.chat("blue", "s")[0] == 200
    assert health(server)[0] == {"status": "ok"}
    server.stop()

    assert server.log.count("the store cannot be written") == 1
    assert server.log.count("the store can be written again") == 1


def test_a_full_disk_refuses_turns_and_recovers(server):
    _, most = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1_000_000, most))
    answers = [server.chat("x" * 50_000, f"s{number}")[0] for number in range(30)]
    said, _ = health(server)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (most, most))

    assert answers == sorted(answers)
    assert set(answers) == {200, 503}
    assert said == {"status": "degraded", "store": ["written"]}
    assert server.chat("blue", "s")[0] == 200
    assert [users(server, f"s{number}") != [] for number in range(30)] == [status == 200 for status in answers]

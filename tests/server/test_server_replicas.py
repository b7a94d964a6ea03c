"""Replicas of the server: how they are started, and what happens on PostgreSQL when one of them, or the database, is gone in the middle of a turn."""

import asyncio
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import replicas
from databases import KINDS, cluster, new_database, of_folder, old_store
from reference_process import HEADER, KEYS, Server, running, said
from scripted_model import Hold, ScriptedModel

from continuity_conformance.plugin import OldRow
from continuity_plugins.postgres_cluster import Cluster

TAKEN_OVER_SECONDS = 12
"""More than a replica needs to see that another one is dead, on a busy machine."""


@pytest.fixture
def model():
    with ScriptedModel() as model:
        yield model


@contextmanager
def on_database(database, folder, *arguments, count=2):
    with ExitStack() as stack:
        start = ("--db", database, "--workspace", str(folder / "workspace"), *KEYS, *arguments)
        yield [stack.enter_context(running(*start)) for _ in range(count)]


def seen(answer):
    status, _, body = answer
    assert status == 200, body
    return replicas.seen_in(body)


@contextmanager
def held_at(model, function, *arguments):
    """A turn in the background, which the model answers after the block, or when it is released."""
    hold = Hold()
    model.will(hold)
    with ThreadPoolExecutor(1) as pool:
        turn = pool.submit(function, *arguments)
        assert hold.asked.wait(10)
        try:
            yield turn, hold.released
        finally:
            hold.released.set()


class FixedPort(Server):
    """One of several replicas that another process has started."""

    def __init__(self, url):
        self.url = url


@contextmanager
def supervised(*arguments, count=3):
    """The replicas of one `continuity serve --replicas`, and the process that started them."""
    command = [sys.executable, "-m", "continuity_server", "--port", "0", f"--replicas={count}", *KEYS, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process, [FixedPort(process.stdout.readline().split()[-1]) for _ in range(count)]
        finally:
            process.terminate()
            process.communicate(timeout=20)


@pytest.mark.parametrize("kind", KINDS)
def test_replicas_serve_one_database_at_a_port_each(kind, tmp_path):
    with supervised("--db", new_database(kind, tmp_path), "--workspace", str(tmp_path / "w")) as (process, servers):
        views = [seen(server.chat(f"[u:{number:08x}]", "s")) for number, server in enumerate(servers)]

        assert len({server.url for server in servers}) == 3
        assert [len(view) for view in views] == [1, 2, 3]
    assert process.returncode == 0


def test_replicas_end_with_the_process_that_started_them(tmp_path):
    with supervised("--db", str(tmp_path / "c.db")) as (process, servers):
        process.kill()
        process.wait(10)
        until = time.monotonic() + 10
        while time.monotonic() < until and any(answers(server) for server in servers):
            time.sleep(0.05)

        assert [answers(server) for server in servers] == [False] * 3


def answers(server):
    try:
        return server.request("GET", "/health")[0] == 200
    except OSError:
        return False


def test_a_replica_that_cannot_start_ends_all_with_its_reason(tmp_path):
    with running("--db", str(tmp_path / "a.db"), *KEYS) as other:
        port = int(other.url.rpartition(":")[2])
        command = [sys.executable, "-m", "continuity_server", "--port", str(port), "--replicas", "2"]
        done = subprocess.run(
            [*command, "--db", str(tmp_path / "b.db")], capture_output=True, text=True, timeout=30, check=False
        )

    assert done.returncode == 1
    assert "another program uses this port" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--db", ":memory:", "--replicas", "2"], "of its own"),
        (["--db", "postgresql://me:secret@nowhere/x"], "CONTINUITY_DB"),
        (["--db", "postgresql://me@nowhere/x?password=secret"], "CONTINUITY_DB"),
    ],
)
def test_a_mistake_in_the_arguments_is_told(arguments, words):
    command = [sys.executable, "-m", "continuity_server", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    assert done.returncode == 2
    assert words in done.stderr
    assert "secret" not in done.stderr


def started_with(database, tmp_path, *arguments, **environment):
    command = [sys.executable, "-m", "continuity_server", "--port", "0", *arguments]
    own = {**os.environ, "CONTINUITY_DB": database, **environment}
    return subprocess.run(command, env=own, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)


def test_a_database_that_is_not_there_is_one_line_without_the_password(tmp_path):
    done = started_with("postgresql://me:secret@/x?host=/nowhere", tmp_path)

    assert done.returncode == 1
    assert "The database cannot be used" in done.stderr
    assert "secret" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_driver_that_is_not_installed_is_one_line(tmp_path):
    (tmp_path / "asyncpg.py").write_text("raise ModuleNotFoundError('not here', name='asyncpg')")
    done = started_with("postgresql://me@/x", tmp_path, PYTHONPATH=str(tmp_path))

    assert done.returncode == 1
    assert (
        done.stderr == "asyncpg is not installed, which PostgreSQL needs: pip install 'session-continuity[postgres]'.\n"
    )


def test_a_defect_of_the_store_on_sqlite_is_refused(tmp_path):
    done = started_with("postgresql://me@/x", tmp_path, "--defect", "responses-never-evicted")

    assert done.returncode == 2
    assert "on SQLite" in done.stderr


def test_a_password_from_the_environment_is_in_no_log(tmp_path):
    url = new_database("postgres", tmp_path).replace("@", ":secret@")
    command = [sys.executable, "-m", "continuity_server", "--port", "0"]
    environment = {**os.environ, "CONTINUITY_DB": url}
    with subprocess.Popen(
        command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        listening = process.stdout.readline()
        process.terminate()
        _, log = process.communicate(timeout=10)

    assert listening.startswith(b"listening")
    assert b"postgresql://" in log
    assert b"secret" not in log


def test_a_slug_that_replicas_race_for_has_one_session(tmp_path):
    with on_database(new_database("postgres", tmp_path), tmp_path, count=3) as servers, ThreadPoolExecutor(6) as pool:
        for round_ in range(5):
            together = threading.Barrier(6)

            def first(server, round_=round_, together=together):
                together.wait(30)
                return server.respond(f"[u:{secrets.token_hex(4)}]", conversation=f"slug {round_}")

            told = list(pool.map(first, [*servers, *servers]))

            assert len({headers[HEADER] for _, headers, _ in told}) == 1
            assert sorted(len(seen(each)) for each in told) == [1, 2, 3, 4, 5, 6]


def test_a_busy_session_is_refused_by_the_other_replica_too_and_free_at_once_afterwards(tmp_path, model):
    options = ("--option", "turns=reject", "--model", model.url)
    with on_database(new_database("postgres", tmp_path), tmp_path, *options) as (one, other):
        with held_at(model, one.chat, "slow", "s") as (slow, released):
            busy = other.chat("fast", "s")
            released.set()
            answered = slow.result(20)
        after = [server.chat("next", "s")[0] for server in (other, one, other)]

    assert (busy[0], answered[0], after) == (409, 200, [200, 200, 200])


def test_a_session_of_a_replica_that_is_killed_goes_on_in_another(tmp_path, model):
    with on_database(new_database("postgres", tmp_path), tmp_path, "--model", model.url) as (one, other):
        one.chat("first", "s")
        with held_at(model, lost_turn, one) as (lost, _):
            one.kill()
            began = time.monotonic()
            status, _, _ = other.chat("second", "s")
            waited = time.monotonic() - began
            assert lost.result(20)

        assert status == 200
        assert waited < TAKEN_OVER_SECONDS
        assert [text for role, text in other.stored("s") if role == "user"] == ["first", "second"]


def lost_turn(server):
    try:
        return server.chat("lost", "s")[0] != 200
    except OSError:
        return True


def test_a_turn_of_a_replica_that_was_stopped_for_long_is_not_stored_after_the_others(tmp_path, model):
    """The other replica has gone on with the session meanwhile: what comes late would be a turn that has not seen the one before it."""
    with on_database(new_database("postgres", tmp_path), tmp_path, "--model", model.url) as (one, other):
        one.chat("first", "s")
        with held_at(model, one.chat, "late", "s") as (late, released):
            one.process.send_signal(signal.SIGSTOP)
            try:
                between = other.chat("between", "s")[0]
            finally:
                released.set()
                one.process.send_signal(signal.SIGCONT)
            status, _, refused = late.result(20)
        after = one.chat("after", "s")[0]

        assert (between, status, after) == (200, 503, 200)
        assert refused["error"]["code"] == "history_unavailable"
        assert [text for role, text in other.stored("s") if role == "user"] == ["first", "between", "after"]


def test_replicas_that_start_at_once_on_an_old_database_all_come_up_and_the_rows_are_whole(tmp_path):
    rows = [
        OldRow(f"resp_{k}", f"slug {k}", f"s{k}", ({"role": "user", "content": f"[u:{k:08x}]"},)) for k in range(300)
    ]
    orphans = [OldRow(f"gone_{k}", f"lost {k}") for k in range(50)]
    asyncio.run(old_store().replace(tmp_path, [*rows, *orphans]))
    with ThreadPoolExecutor(3) as pool:
        start = ("--db", of_folder(tmp_path), "--workspace", str(tmp_path / "w"), *KEYS)
        servers = list(pool.map(lambda _: Server(*start), range(3)))
    try:
        told = [server.respond("[u:0000aaaa]", conversation="slug 5") for server in servers]
        lost = servers[1].respond("x", conversation="lost 7")[0]

        assert {headers[HEADER] for _, headers, _ in told} == {"s5"}
        assert [len(seen(each)) for each in told] == [2, 3, 4]
        assert lost == 404
        assert [len(servers[k % 3].stored(f"s{k}")) for k in range(6, 300, 7)] == [1] * 42
    finally:
        for server in servers:
            server.stop()


def test_rows_that_an_old_program_writes_are_taken_over_once_by_replicas_that_see_them_at_once(tmp_path):
    asyncio.run(old_store().replace(tmp_path, []))
    with on_database(of_folder(tmp_path), tmp_path, count=3) as servers, ThreadPoolExecutor(3) as pool:
        history = ({"role": "user", "content": "[u:0000aaaa]"}, {"role": "assistant", "content": "Yes."})
        asyncio.run(old_store().add(tmp_path, [OldRow(f"r{k}", f"slug {k}", f"s{k}", history) for k in range(20)]))
        told = list(pool.map(lambda server: server.respond("[u:0000bbbb]", conversation="slug 3"), servers))

        assert {headers[HEADER] for _, headers, _ in told} == {"s3"}
        assert [len(servers[0].stored(f"s{k}")) for k in (1, 3, 19)] == [2, 8, 2]


def test_a_replica_that_starts_does_not_disturb_the_turns_of_the_others(tmp_path):
    """A start that locked tables would cross the transactions of turns: PostgreSQL then ends one of the two."""
    database = new_database("postgres", tmp_path)
    with on_database(database, tmp_path, count=1) as [server], ThreadPoolExecutor(4) as pool:
        over, statuses = threading.Event(), []

        def client(number):
            while not over.is_set():
                statuses.append(server.respond("text", conversation=f"slug {number}")[0])

        clients = [pool.submit(client, number) for number in range(4)]
        for _ in range(3):
            with on_database(database, tmp_path, count=1) as [other]:
                statuses.append(other.respond("text", conversation="slug 0")[0])
        over.set()
        for each in clients:
            each.result(30)

        assert len(statuses) > 20
        assert set(statuses) == {200}


@pytest.fixture
def own_cluster():
    """A PostgreSQL that a test may stop."""
    started = Cluster()
    yield started
    started.close()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_no_answered_turn_is_lost_when_the_database_restarts_under_load(own_cluster, tmp_path, mode):
    """`immediate` is a crash of PostgreSQL. What it has confirmed is on the disk."""
    own_cluster.sql("CREATE DATABASE load OWNER continuity")
    with on_database(own_cluster.url("load"), tmp_path) as servers:
        over, answered = threading.Event(), {f"s{k}": [] for k in range(4)}

        def client(session):
            number = 0
            while not over.is_set():
                number += 1
                status, _, body = servers[number % 2].chat(f"turn {number}", session)
                if status == 200 and not body["session"]["degraded"]:
                    answered[session].append(f"turn {number}")

        with ThreadPoolExecutor(4) as pool:
            running_clients = [pool.submit(client, session) for session in answered]
            time.sleep(0.7)
            own_cluster.stop(mode)
            time.sleep(0.5)
            own_cluster.start()
            back = time.monotonic() + 15
            before = {session: len(turns) for session, turns in answered.items()}
            while time.monotonic() < back and any(len(answered[s]) <= before[s] for s in answered):
                time.sleep(0.1)
            over.set()
            for each in running_clients:
                each.result(40)
        stored = {s: [text for role, text in servers[0].stored(s) if role == "user"] for s in answered}

        assert all(len(turns) > before[session] for session, turns in answered.items())
        assert {s: [text for text in stored[s] if text in set(answered[s])] for s in answered} == answered
        assert becomes_healthy(servers[0])


def becomes_healthy(server):
    """A store that could not be read is reported for ten seconds."""
    until = time.monotonic() + 20
    while time.monotonic() < until and server.request("GET", "/health")[2] != {"status": "ok"}:
        time.sleep(0.2)
    return server.request("GET", "/health")[2] == {"status": "ok"}


def test_a_database_that_is_gone_degrades_turns_and_health_says_so(own_cluster, tmp_path):
    own_cluster.sql("CREATE DATABASE gone OWNER continuity")
    with on_database(own_cluster.url("gone"), tmp_path, count=1) as [server]:
        server.chat("[u:0000aaaa]", "s")
        own_cluster.stop()
        time.sleep(6)
        status, _, body = server.chat("[u:0000bbbb]", "s")
        health = server.request("GET", "/health")[2]
        own_cluster.start()
        time.sleep(1)
        again = server.chat("[u:0000cccc]", "s")

        assert (status, body["session"]["degraded"]) == (200, True)
        assert health["status"] == "degraded"
        assert seen(again) == ["0000aaaa", "0000cccc"]
        assert re.search("0000bbbb", said(body))


def test_the_cluster_of_the_tests_ends_with_its_process():
    code = "from continuity_plugins.postgres_cluster import Cluster; import os, sys; c = Cluster(); print(c._folder, flush=True); os.kill(os.getpid(), 9)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    folder = done.stdout.strip()
    until = time.monotonic() + 10
    while time.monotonic() < until and Path(folder).exists():
        time.sleep(0.1)

    assert "continuity-pg-" in folder
    assert not Path(folder).exists()
    assert cluster().sql("SELECT 1") == "1"

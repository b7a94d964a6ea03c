"""The writer: a change is told as stored when it is on the disk, and not before. The disk is the real one; the tests only decide when it is asked."""

import asyncio
import sqlite3
import threading
from contextlib import closing

import pytest

from continuity_server.store import wal
from continuity_server.store.disk import CHANGES_A_LOG, StoreUnwritableError
from continuity_server.store.wal import Wal
from continuity_server.store.writer import Writer


@pytest.fixture
def connection(tmp_path):
    with closing(sqlite3.connect(tmp_path / "c.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (word TEXT)")
        yield connection


@pytest.fixture
def writer(connection):
    with closing(Writer(connection)) as writer:
        yield writer


@pytest.fixture
def gate(monkeypatch) -> tuple[threading.Event, list[int]]:
    """The disk does nothing until the event is set. The list has an entry for each sync."""
    opened, syncs, real = threading.Event(), [], wal._sync

    def sync(file: int) -> None:
        opened.wait()
        syncs.append(file)
        real(file)

    monkeypatch.setattr(wal, "_sync", sync)
    return opened, syncs


def insert(connection, word):
    return lambda: connection.execute("INSERT INTO t VALUES (?)", (word,))


def words(connection):
    return [word for (word,) in connection.execute("SELECT word FROM t ORDER BY rowid")]


def test_a_change_is_done_when_it_is_on_the_disk(connection, writer, gate):
    async def played():
        task = asyncio.create_task(writer.change(insert(connection, "red")))
        await asyncio.sleep(0.05)
        before = task.done()
        gate[0].set()
        await task
        return before

    assert asyncio.run(played()) is False
    assert words(connection) == ["red"]
    assert len(gate[1]) == 1


def test_changes_that_come_during_a_sync_share_the_next_one(connection, writer, gate):
    async def played():
        tasks = []
        for word in ("red", "blue", "green"):
            tasks.append(asyncio.create_task(writer.change(insert(connection, word))))
            await asyncio.sleep(0.02)
        gate[0].set()
        await asyncio.gather(*tasks)

    asyncio.run(played())

    assert words(connection) == ["red", "blue", "green"]
    assert len(gate[1]) == 2


def test_after_a_failed_sync_nothing_is_told_as_stored(connection, writer, monkeypatch):
    def fails(_file: int) -> None:
        raise OSError("the disk is gone")

    async def played():
        with pytest.raises(StoreUnwritableError):
            await writer.change(insert(connection, "red"))
        monkeypatch.undo()
        with pytest.raises(StoreUnwritableError):
            await writer.change(insert(connection, "blue"))

    monkeypatch.setattr(wal, "_sync", fails)
    asyncio.run(played())

    assert "blue" not in words(connection)
    with pytest.raises(StoreUnwritableError):
        asyncio.run(writer.check())


def test_a_change_that_fails_takes_those_of_its_round_with_it(connection, writer):
    async def played():
        good, bad = insert(connection, "red"), lambda: connection.execute("INSERT INTO nowhere VALUES (1)")
        return await asyncio.gather(writer.change(good), writer.change(bad), return_exceptions=True)

    assert [type(found) for found in asyncio.run(played())] == [StoreUnwritableError] * 2
    assert words(connection) == []
    asyncio.run(writer.check())


def test_sqlite_syncs_itself_where_there_is_no_log(tmp_path):
    with closing(sqlite3.connect(tmp_path / "c.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (word TEXT)")
        with closing(Wal(connection)):
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_a_change_with_a_defect_fails_alone_and_leaves_nothing(connection, writer):
    async def played():
        bad = lambda: (insert(connection, "red")(), {}["nothing"])  # noqa: E731 - a change is a function
        with pytest.raises(KeyError):
            await asyncio.wait_for(writer.change(bad), 2)
        await writer.change(insert(connection, "blue"))

    asyncio.run(played())

    assert words(connection) == ["blue"]


def test_a_locked_database_is_waited_for_without_blocking_the_event_loop(connection, writer, tmp_path):
    async def played(other):
        other.execute("BEGIN IMMEDIATE")
        task = asyncio.create_task(writer.change(insert(connection, "red")))
        began, rounds = asyncio.get_running_loop().time(), 0
        while asyncio.get_running_loop().time() < began + 0.3:
            await asyncio.sleep(0.001)
            rounds += 1
        before = task.done()
        other.execute("ROLLBACK")
        await task
        return before, rounds

    connection.execute("PRAGMA busy_timeout=0")
    with closing(sqlite3.connect(tmp_path / "c.db", isolation_level=None)) as other:
        before, rounds = asyncio.run(played(other))

    assert before is False
    assert rounds > 30
    assert words(connection) == ["red"]


def test_the_log_is_copied_into_the_database_by_the_thread(connection, writer, tmp_path, monkeypatch):
    async def played():
        for number in range(CHANGES_A_LOG * 3):
            await writer.change(insert(connection, str(number)))

    monkeypatch.setattr(wal, "_sync", lambda _file: None)
    asyncio.run(played())
    writer._wal._thread.shutdown()  # it may still copy: a file that is half copied cannot be read without its log

    assert len(words(connection)) == CHANGES_A_LOG * 3
    assert (tmp_path / "c.db-wal").stat().st_size < 3 * 1024 * 1024
    with closing(sqlite3.connect(f"file:{tmp_path / 'c.db'}?immutable=1", uri=True)) as without_log:
        assert len(words(without_log)) >= CHANGES_A_LOG * 2


def test_a_file_that_may_not_be_written_is_known_at_the_start(connection, tmp_path):
    with (
        closing(sqlite3.connect(f"file:{tmp_path / 'c.db'}?mode=ro", uri=True, isolation_level=None)) as read_only,
        closing(Writer(read_only)) as writer,
    ):
        failures = writer.health.failures
        with pytest.raises(StoreUnwritableError):
            asyncio.run(writer.check())

    assert failures == ["written"]
    assert words(connection) == []

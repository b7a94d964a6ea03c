"""The tip of a long chain: it is remembered, and forgotten when a link of the chain changes."""

import asyncio
import sqlite3
from contextlib import closing

import pytest

import fill
from continuity_server.rules import Rules
from continuity_server.server import Parts, open_store
from continuity_server.settings import KEYLESS, Options, Settings
from continuity_server.turn.resolve import Resolver

LINKS = 50


@pytest.fixture
def path(tmp_path):
    fill.chain(tmp_path / "c.db", LINKS)
    return tmp_path / "c.db"


@pytest.fixture
def store(path):
    with closing(open_store(Settings(db=str(path)), Rules(Options()), Parts())) as store:
        yield store


@pytest.fixture
def tip(store):
    """The id of the tip of the chain's first session, by one resolver."""
    resolver = Resolver(store, Rules(Options()))
    return lambda: resolver.tip(KEYLESS, fill.ROOT_OF_CHAIN).id


def test_a_chain_is_walked_once(store, tip):
    statements = []
    first = tip()
    store._connection.set_trace_callback(statements.append)

    assert [first, tip()] == [f"chain-{LINKS}"] * 2
    assert len(statements) <= 3


def test_a_link_that_the_server_sets_is_noticed(store, tip):
    before = tip()
    asyncio.run(store.link(KEYLESS, "chain-25", None))

    assert [before, tip()] == [f"chain-{LINKS}", "chain-25"]


def test_a_session_that_is_deleted_is_noticed(store, tip):
    before = tip()
    asyncio.run(store.delete_sessions(KEYLESS, ["chain-30"]))

    assert [before, tip()] == [f"chain-{LINKS}", "chain-29"]


def test_a_link_that_another_process_sets_is_noticed(path, tip):
    before = tip()
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE sessions SET next=NULL WHERE id='chain-10'")

    assert [before, tip()] == [f"chain-{LINKS}", "chain-10"]


def test_a_chain_that_goes_on_is_followed(store, tip):
    before = tip()
    query = "INSERT INTO sessions (owner, id, root, parent, kind, created) VALUES (?, 'new', 'chain-1', ?, 'compression', 0)"
    store._connection.execute(query, (KEYLESS, before))
    store._connection.execute("UPDATE sessions SET next='new' WHERE id=?", (before,))

    assert [before, tip()] == [f"chain-{LINKS}", "new"]


def test_a_cycle_ends_where_it_ended_before(store, tip):
    asyncio.run(store.link(KEYLESS, f"chain-{LINKS}", fill.ROOT_OF_CHAIN))

    assert [tip(), tip()] == [f"chain-{LINKS}"] * 2

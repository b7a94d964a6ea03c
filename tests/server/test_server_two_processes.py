"""Two server processes on one database, as during a rolling update: no turn is lost, and each sees those before it."""

from contextlib import ExitStack
from functools import partial

import pytest
import replicas
from databases import KINDS as DATABASES
from databases import new_database
from reference_process import KEYS, running

KINDS = {
    "header": partial(replicas.take_turns, send=replicas.by_header),
    "stream": partial(replicas.take_turns, send=replicas.streamed),
    "slug": partial(replicas.take_turns, send=replicas.by_slug),
    "previous id": replicas.branch,
    "idempotent": replicas.repeat,
}
ROTATING = ("--context", "60")
"""A context so small that a session is compressed, and goes on under another id, every few turns."""


@pytest.fixture(params=DATABASES)
def database(request, tmp_path):
    return new_database(request.param, tmp_path)


@pytest.fixture(params=[(), ROTATING], ids=["plain", "rotating"])
def servers(request, tmp_path, database):
    with ExitStack() as stack:
        start = ("--db", database, "--workspace", str(tmp_path / "workspace"), *KEYS, *request.param)
        yield [stack.enter_context(running(*start)) for _ in range(2)]


@pytest.mark.parametrize("kind", KINDS)
def test_turns_through_two_processes_see_each_other(servers, kind):
    assert KINDS[kind](servers, conversations=4, turns=5) == []

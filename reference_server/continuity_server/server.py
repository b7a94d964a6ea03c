"""The composition root: it builds every part of the server, and listens.

A part is a class: `Rules`, `Store`, `Agent`, a handler … A defect is one or more subclasses of parts; `Parts` says which class is built for which part.
"""

import asyncio
import errno
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast

from aiohttp import web

from continuity_server.http.app import App
from continuity_server.http.chat import ChatHandler, ChatStream
from continuity_server.http.connections import Connections
from continuity_server.http.control import ControlHandler
from continuity_server.http.conversations import ConversationsHandler
from continuity_server.http.middleware import Middleware
from continuity_server.http.request import Access
from continuity_server.http.response_events import ResponseEvents
from continuity_server.http.responses import ResponsesHandler
from continuity_server.http.sessions import SessionsHandler
from continuity_server.model.builtin import BuiltinModel
from continuity_server.model.http_model import HttpModel
from continuity_server.model.types import Model
from continuity_server.model.workspace import Workspace
from continuity_server.on_postgres import opened_on_postgres, waiting_for
from continuity_server.rules import Rules
from continuity_server.settings import Settings
from continuity_server.store.backfill import Backfill
from continuity_server.store.deletions import Deletions
from continuity_server.store.histories import Histories
from continuity_server.store.interface import AnyStore
from continuity_server.store.shared_locks import SharedLocks
from continuity_server.store.store import Store
from continuity_server.store.upgrade import Upgrade
from continuity_server.store.wal import database_file
from continuity_server.store.writer import Writer
from continuity_server.turn.agent import Agent
from continuity_server.turn.commit import Committer
from continuity_server.turn.history import HistoryReader
from continuity_server.turn.locks import Locks
from continuity_server.turn.resolve import Resolver
from continuity_server.turn.summarise import Summariser
from continuity_server.turn.tool_loop import ToolLoop

if TYPE_CHECKING:
    from continuity_server.defects import Defect
    from continuity_server.store.postgres.store import PostgresStore

_SHUTDOWN_SECONDS: Final = 5.0
_IDLE_SECONDS: Final = 60.0
"""How long a connection may take to send a request, the first one too."""
_READER_SECONDS: Final = 10.0
"""How long a client may take nothing of an answer that waits for it."""
_BACKLOG: Final = 1024
_OF_SQLITE: Final = (Backfill, Deletions, Histories, SharedLocks, Store, Upgrade, Writer)
P = TypeVar("P")


class NotListeningError(Exception):
    """The server cannot listen at its address."""


class UnknownDefectError(Exception):
    """There is no defect of this name."""


class Parts:
    """Which class is built for each part: the part itself, or the subclass that a defect puts in its place."""

    def __init__(self, replaced: Mapping[type, type] | None = None) -> None:
        self._replaced = replaced or {}

    def has_replaced(self, parts: Collection[type]) -> bool:
        return any(part in self._replaced for part in parts)

    def __getitem__(self, part: type[P]) -> type[P]:
        return cast("type[P]", self._replaced.get(part, part))


def parts_with(names: Sequence[str] = ()) -> Parts:
    """Return the parts of a server with these defects. If two defects change one part, the class that is built inherits from both."""
    replaced: dict[type, list[type]] = {}
    for name in names:
        if name not in _defects():
            raise UnknownDefectError(f"There is no defect {name!r}. --defects lists those that there are.")
        for part, subclass in _defects()[name].parts.items():
            replaced.setdefault(part, []).append(subclass)
    return Parts({part: type(part.__name__, tuple(dict.fromkeys(bases)), {}) for part, bases in replaced.items()})


def list_defects() -> list[dict[str, object]]:
    """Return all defects, as `--defects` prints them."""
    return [defect.as_json() for defect in _defects().values()]


def _defects() -> "Mapping[str, Defect]":
    from continuity_server.defects import DEFECTS  # noqa: PLC0415 - a server without a defect does not load them

    return DEFECTS


@asynccontextmanager
async def serving(settings: Settings, parts: Parts) -> AsyncIterator[str]:
    """Listen while the block lasts, and give the URL; then finish running turns (bounded) and close the store."""
    async with AsyncExitStack() as stack:
        rules = parts[Rules](settings.options)
        store = await opened(settings, rules, parts, stack)
        model: Model = parts[HttpModel](settings.model, settings.model_key) if settings.model else BuiltinModel()
        stack.push_async_callback(model.close)
        offered = settings.options.environment != "none"
        workspace = parts[Workspace](_workspace_folder(settings, stack), offered=offered)
        app = assemble(settings=settings, parts=parts, rules=rules, store=store, model=model, workspace=workspace)
        application = app.build()
        connections = Connections(lambda: settings.most_connections)
        application.middlewares.insert(0, connections.track)
        if not isinstance(store, Store):
            waiting_for(store, application)
        runner = web.AppRunner(
            application, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS, keepalive_timeout=_IDLE_SECONDS
        )
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        listener = stack.enter_context(listening(settings))
        assert runner.server is not None, "it was set up"
        accepting = asyncio.create_task(connections.accept(listener, runner.server))
        stack.push_async_callback(_ended, accepting)
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        yield f"http://{host}:{listener.getsockname()[1]}"


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def listening(settings: Settings) -> socket.socket:
    """Return a socket that listens. The system ends a connection whose reader takes nothing for a while, so that it holds neither its session nor memory."""
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        listens = socket.create_server((settings.host, settings.port), family=family, backlog=_BACKLOG)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
            listens.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(_READER_SECONDS * 1000))
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        why = "another program uses this port" if taken else os.strerror(error.errno or 0)
        where = f"{settings.host} port {settings.port}"
        raise NotListeningError(f"{where}: the server cannot listen: {why}. Choose another with --port.") from None
    return listens


def open_store(settings: Settings, rules: Rules, parts: Parts) -> Store:
    """Open the database, upgrade it if it has the old schema, and build the store on it."""
    backfill = parts[Backfill](rules)
    connection = parts[Upgrade](rules, backfill, settings.first_principal).open(settings.db)
    histories, deletions, writer = parts[Histories](connection), parts[Deletions](connection), parts[Writer](connection)
    shared = parts[SharedLocks](database_file(connection))
    return parts[Store](connection, rules, histories, deletions, backfill, writer, shared)


async def opened(settings: Settings, rules: Rules, parts: Parts, stack: AsyncExitStack) -> "Store | PostgresStore":
    """Open the store. It is closed with the stack."""
    if not settings.is_postgres:
        store = open_store(settings, rules, parts)
        stack.callback(store.close)
        return store
    if parts.has_replaced(_OF_SQLITE):
        raise UnknownDefectError("A defect of these changes the store on SQLite: it cannot be used on PostgreSQL.")
    postgres = await opened_on_postgres(settings, rules)
    stack.push_async_callback(postgres.close)
    return postgres


def assemble(  # noqa: PLR0913 - the root knows everything
    *, settings: Settings, parts: Parts, rules: Rules, store: AnyStore, model: Model, workspace: Workspace
) -> App:
    """Build the agent and the handlers, and give each what it needs."""
    locks = parts[Locks](rules, store.locks)
    resolver = parts[Resolver](store, rules)
    committer = parts[Committer](store, rules, settings.max_responses)
    agent = parts[Agent](
        store=store,
        rules=rules,
        resolver=resolver,
        reader=parts[HistoryReader](store, rules),
        tool_loop=parts[ToolLoop](model, rules, workspace),
        summariser=parts[Summariser](model, rules, settings.context),
        committer=committer,
        locks=locks,
    )
    access = parts[Access](settings, rules)
    return parts[App](
        settings,
        rules,
        parts[Middleware](settings, rules, access),
        store,
        chat=parts[ChatHandler](rules, access, agent, parts[ChatStream]),
        responses=parts[ResponsesHandler](rules, access, agent, store, parts[ResponseEvents]),
        conversations=parts[ConversationsHandler](rules, access, store, resolver, locks, workspace=workspace),
        sessions=parts[SessionsHandler](rules, access, store, resolver, locks, workspace=workspace),
        control=parts[ControlHandler](settings, rules, store, resolver, committer),
    )


def _workspace_folder(settings: Settings, stack: AsyncExitStack) -> Path:
    """ENV-03: the workspace is beside the database, so that both survive a restart."""
    if settings.workspace is not None:
        return Path(settings.workspace)
    if settings.is_postgres:
        return Path(f"workspace-{settings.shown_db.rpartition('/')[2] or 'continuity'}")
    if settings.db == ":memory:":
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="continuity-")))
    database = Path(settings.db)
    return database.with_name(f"workspace-{database.name}")

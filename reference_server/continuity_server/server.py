"""The server: its parts put together, listening for as long as somebody wants it."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from aiohttp import web

from continuity_server.http.app import build
from continuity_server.model.builtin import BuiltinModel
from continuity_server.model.http_model import HttpModel
from continuity_server.model.types import Model
from continuity_server.model.workspace import Workspace
from continuity_server.rules import Rules
from continuity_server.settings import Settings
from continuity_server.store.store import Store
from continuity_server.turn.agent import Agent
from continuity_server.turn.commit import Committer
from continuity_server.turn.history import HistoryReader
from continuity_server.turn.locks import Locks
from continuity_server.turn.resolve import Resolver
from continuity_server.turn.summarise import Summariser
from continuity_server.turn.tool_loop import ToolLoop

_SHUTDOWN_SECONDS: Final = 5.0


@asynccontextmanager
async def serving(settings: Settings, rules: Rules) -> AsyncIterator[str]:
    """Listen while the block lasts, and give the URL; then finish running turns (bounded) and close the store."""
    async with AsyncExitStack() as stack:
        store = Store(settings.db, rules, settings.first_principal)
        stack.callback(store.close)
        model: Model = HttpModel(settings.model, settings.model_key) if settings.model else BuiltinModel()
        stack.push_async_callback(model.close)
        offered = settings.options.environment != "none"
        workspace = Workspace(_workspace_folder(settings, stack), offered=offered)
        app = build(settings, rules, assemble(settings, rules, store, model, workspace))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, settings.host, settings.port, backlog=1024).start()
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        yield f"http://{host}:{runner.addresses[0][1]}"


def assemble(settings: Settings, rules: Rules, store: Store, model: Model, workspace: Workspace) -> Agent:
    """Put the agent together."""
    return Agent(
        store=store,
        rules=rules,
        resolver=Resolver(store, rules),
        viewer=HistoryReader(store, rules),
        loop=ToolLoop(model, rules, workspace),
        compressor=Summariser(model, rules, settings.context),
        keeper=Committer(store, rules, settings.max_responses),
        locks=Locks(reject=rules.rejects(), retry_after=rules.retry_after()),
    )


def _workspace_folder(settings: Settings, stack: AsyncExitStack) -> Path:
    """Beside the database, so that it outlives a restart as the database does (ENV-03)."""
    if settings.db == ":memory:":
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="continuity-")))
    database = Path(settings.db)
    return database.with_name(f"workspace-{database.name}")

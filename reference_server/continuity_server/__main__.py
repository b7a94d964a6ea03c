"""`python -m continuity_server`: puts the parts together, says where it listens, and leaves in order."""

import asyncio
import json
import logging
import signal
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from aiohttp import web

from continuity_server.agent import Agent
from continuity_server.app import build
from continuity_server.builtin import BuiltinModel
from continuity_server.compress import Compressor
from continuity_server.continuity import Rules
from continuity_server.keep import Keeper
from continuity_server.locks import Locks
from continuity_server.loop import ToolLoop
from continuity_server.model import HttpModel, Model
from continuity_server.resolve import Resolver
from continuity_server.settings import Settings, parse
from continuity_server.store import Store
from continuity_server.view import Viewer
from continuity_server.workspace import Workspace

_SHUTDOWN_SECONDS: Final = 5.0


def main(arguments: list[str] | None = None) -> int:
    settings = parse(arguments)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if settings.list_defects:
        from continuity_server.defects import listed  # noqa: PLC0415 - a server without a defect does not load them

        sys.stdout.write(json.dumps(listed(), indent=1) + "\n")
        return 0
    rules = _rules(settings)
    if rules is None:
        sys.stderr.write(f"There is no defect {settings.defect!r}. --defects lists those that there are.\n")
        return 2
    asyncio.run(_serve(settings, rules))
    return 0


def _rules(settings: Settings) -> Rules | None:
    if settings.defect is None:
        return Rules(settings.options)
    from continuity_server.defects import DEFECTS  # noqa: PLC0415 - a server without a defect does not load them

    defect = DEFECTS.get(settings.defect)
    return defect.rules(settings.options) if defect else None


async def _serve(settings: Settings, rules: Rules) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        store = Store(settings.db)
        stack.callback(store.close)
        model: Model = HttpModel(settings.model, settings.model_key) if settings.model else BuiltinModel()
        stack.push_async_callback(model.close)
        workspace = Workspace(_workspace_folder(settings, stack), settings.options.environment)
        app = build(settings, rules, assemble(settings, rules, store, model, workspace))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, settings.host, settings.port, backlog=1024).start()
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        sys.stdout.write(f"listening on http://{host}:{runner.addresses[0][1]}\n")
        sys.stdout.flush()
        await stop.wait()


def assemble(settings: Settings, rules: Rules, store: Store, model: Model, workspace: Workspace) -> Agent:
    """Put the agent together."""
    return Agent(
        store=store,
        rules=rules,
        resolver=Resolver(store, rules),
        viewer=Viewer(store, rules),
        loop=ToolLoop(model, workspace),
        compressor=Compressor(model, rules, settings.context),
        keeper=Keeper(store, rules, settings.max_responses),
        locks=Locks(reject=rules.options.turns == "reject"),
    )


def _workspace_folder(settings: Settings, stack: AsyncExitStack) -> Path:
    """Beside the database, so that it outlives a restart as the database does (ENV-03)."""
    if settings.db == ":memory:":
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="continuity-")))
    return Path(f"{settings.db}.workspace")


if __name__ == "__main__":
    sys.exit(main())

"""Several server processes on one database: `continuity serve --replicas N`.

Each is a server as every other, at a port of its own. They end with this process, however it ends. One that is killed is not started again, which is the work of
whoever supervises this process; one that fails ends all.
"""

import multiprocessing
import signal
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import connection
from typing import Final, cast

from continuity_server.settings import Settings

Serve = Callable[[Settings, int | None], int]
"""Serve until a signal comes, or until this file descriptor can be read. Returns the exit status."""

_METHODS: Final = multiprocessing.get_all_start_methods()
_CONTEXT: Final = multiprocessing.get_context("fork" if "fork" in _METHODS else None)
"""A fork has imported everything already. No thread runs yet."""


def serve_all(settings: Settings, serve: Serve) -> int:
    """Serve with `settings.replicas` processes, and return the worst of their exit statuses."""
    processes = [_CONTEXT.Process(target=_serve_one, args=(each, serve)) for each in _each(settings)]
    for process in processes:
        process.start()

    def end(*_: object) -> None:
        for process in processes:
            process.terminate()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    running = {process.sentinel: process for process in processes}
    while running:
        for ended in connection.wait(list(running)):
            process = running.pop(cast("int", ended))
            process.join()
            if (process.exitcode or 0) > 0:  # it could not start, or it failed
                end()
    return max(abs(process.exitcode or 0) for process in processes)


def _each(settings: Settings) -> list[Settings]:
    """The settings of each process: the ports follow each other, unless any free ones will do."""
    step = 1 if settings.port else 0
    return [replace(settings, port=settings.port + step * k, replicas=1) for k in range(settings.replicas)]


def _serve_one(settings: Settings, serve: Serve) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "it is a process of its own"
    raise SystemExit(serve(settings, int(parent.sentinel)))

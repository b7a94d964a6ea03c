"""`python -m continuity_server`: reads the command line, prints where the server listens, and stops on SIGTERM or SIGINT."""

import asyncio
import gc
import json
import logging
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from continuity_server.server import NotListeningError, Parts, UnknownDefectError, list_defects, parts_with, serving
from continuity_server.settings import Settings, parse
from continuity_server.store.upgrade import StoreUnusableError


def main(arguments: list[str] | None = None) -> int:
    settings = parse(arguments)
    os.umask(0o077)  # conversations are nobody else's business, on this machine neither
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if settings.list_defects:
        sys.stdout.write(json.dumps(list_defects(), indent=1) + "\n")
        return 0
    if not settings.temporary:
        return _served_by_all(settings)
    with TemporaryDirectory(prefix="continuity-", ignore_cleanup_errors=True) as folder:
        return _served_by_all(replace(settings, db=str(Path(folder, settings.db))))


def _served_by_all(settings: Settings) -> int:
    if settings.replicas == 1:
        return _served(settings)
    from continuity_server.replicas import serve_all  # noqa: PLC0415 - multiprocessing would make every start slower

    return serve_all(settings, _served)


def _served(settings: Settings, stopping: int | None = None) -> int:
    """Serve, and return the exit status. `stopping`: a file descriptor that can be read when the server must stop."""
    try:
        asyncio.run(_serve(settings, parts_with(settings.defects), stopping))
    except UnknownDefectError as error:
        return _fail(error, 2)
    except (StoreUnusableError, NotListeningError) as error:
        return _fail(error, 1)
    return 0


def _fail(error: Exception, status: int) -> int:
    sys.stderr.write(f"{error}\n")
    return status


async def _serve(settings: Settings, parts: Parts, stopping: int | None) -> None:
    stop = asyncio.Event()
    if stopping is not None:
        asyncio.get_running_loop().add_reader(stopping, stop.set)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with serving(settings, parts) as url:
        logger = logging.getLogger("continuity")
        until = ", until the server ends; --db FILE keeps them" if settings.temporary else " (--db)"
        logger.info("sessions are stored in %s%s", settings.shown_db, until)
        for warning in settings.warnings():
            logger.warning("%s", warning)
        # What is loaded now stays until the end: the garbage collector need not look at it again and again.
        gc.freeze()
        sys.stdout.write(f"listening on {url}\n")
        sys.stdout.flush()
        await stop.wait()


if __name__ == "__main__":
    sys.exit(main())

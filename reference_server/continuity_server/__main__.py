"""`python -m continuity_server`: reads the command line, says where the server listens, and leaves in order."""

import asyncio
import json
import logging
import signal
import sys

from continuity_server.rules import Rules
from continuity_server.settings import Settings, parse


def main(arguments: list[str] | None = None) -> int:
    settings = parse(arguments)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if settings.list_defects:
        return _list_defects()
    rules = _rules(settings)
    if rules is None:
        sys.stderr.write(f"There is no defect {settings.defect!r}. --defects lists those that there are.\n")
        return 2
    from continuity_server.store.store import StoreUnusableError  # noqa: PLC0415 - --help and --defects need no store

    try:
        asyncio.run(_serve(settings, rules))
    except StoreUnusableError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _list_defects() -> int:
    from continuity_server.defects import listed  # noqa: PLC0415 - a server without a defect does not load them

    sys.stdout.write(json.dumps(listed(), indent=1) + "\n")
    return 0


def _rules(settings: Settings) -> Rules | None:
    if settings.defect is None:
        return Rules(settings.options)
    from continuity_server.defects import DEFECTS  # noqa: PLC0415 - a server without a defect does not load them

    defect = DEFECTS.get(settings.defect)
    return defect.rules(settings.options) if defect else None


async def _serve(settings: Settings, rules: Rules) -> None:
    from continuity_server.server import serving  # noqa: PLC0415 - --help and --defects need no HTTP

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with serving(settings, rules) as url:
        sys.stdout.write(f"listening on {url}\n")
        sys.stdout.flush()
        await stop.wait()


if __name__ == "__main__":
    sys.exit(main())

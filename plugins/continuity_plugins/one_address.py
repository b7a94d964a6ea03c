"""`python -m continuity_plugins.one_address`: the bundled server as several replicas on PostgreSQL, behind one address.

Each connection goes to the next replica, byte by byte. With one replica there is nothing to distribute: this process then becomes the server itself.
"""

import argparse
import asyncio
import itertools
import os
import runpy
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from continuity_plugins.folder_database import create, database_of

_SERVER: Final = "continuity_server"
_PIECE: Final = 65_536
_LISTENING: Final = b"listening on "


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="one_address", allow_abbrev=False)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--cluster", required=True, help="the URL of the cluster, with {database} for its name")
    parser.add_argument("--folder", type=Path, required=True, help="it gives the database its name")
    parser.add_argument("--replicas", type=int, default=1)
    own, others = parser.parse_known_args(arguments)
    asyncio.run(create(own.cluster, own.folder))
    os.environ["CONTINUITY_DB"] = database_of(own.cluster, own.folder)
    if own.replicas == 1:
        _become_server(f"--port={own.port}", *others)
    listens, tells = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(tells, sys.stdout.fileno())
        os.closerange(min(listens, tells), max(listens, tells) + 1)
        _become_server("--port=0", f"--replicas={own.replicas}", *others)
    os.close(tells)
    return asyncio.run(_serve(own.port, own.replicas, listens, child))


def _become_server(*arguments: str) -> None:
    """Run the server in this process, which ends with it."""
    sys.argv = [_SERVER, *arguments]
    runpy.run_module(_SERVER, run_name="__main__", alter_sys=True)


async def _serve(port: int, replicas: int, listens: int, child: int) -> int:
    """Distribute connections until the replicas have ended. Returns their exit status."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, os.kill, child, signal.SIGTERM)
    output = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(output), os.fdopen(listens, "rb"))
    ports = [await _next_port(output) for _ in range(replicas)]
    if all(ports):
        turns = itertools.cycle(ports)

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await _distribute(reader, writer, itertools.islice(turns, replicas))

        async with await asyncio.start_server(connected, "127.0.0.1", port, backlog=1024):
            await output.read()  # it ends with the last replica
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    return os.waitstatus_to_exitcode(status)


async def _next_port(output: asyncio.StreamReader) -> int:
    """The port of the next replica that listens; 0 if there will be none."""
    line = await output.readline()
    return int(line.rpartition(b":")[2]) if line.startswith(_LISTENING) else 0


async def _distribute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ports: Iterator[int]) -> None:
    """Give a connection to the first of these replicas that takes it."""
    for port in ports:
        with suppress(OSError):
            other_reader, other_writer = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(_pass_on(reader, other_writer), _pass_on(other_reader, writer))
            other_writer.close()
            break
    writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what is sent in one direction, and its end. A connection that breaks off breaks off at the other side too."""
    try:
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.transport.abort()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

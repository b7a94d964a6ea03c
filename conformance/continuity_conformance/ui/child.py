"""A child process: a command `continuity`, its output line by line, and its end.

It has a process group of its own, so that Ctrl-C in the terminal reaches the page's server alone, which then stops the child in good order.
"""

import asyncio
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, Self

_LONGEST_LINE: Final = 1 << 22
_SECONDS_TO_STOP: Final = 30.0
_OURS: Final = "continuity: "
_OTHERS_KEPT: Final = 600


class Child:
    """`async with Child(...)`: read its `lines`, then its `message` and `exit_code`. Leaving the block stops it."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._command = command
        self._environment = environment
        self._process: Process | None = None
        self._errors: asyncio.Task[bytes] | None = None

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            env=dict(self._environment),
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            limit=_LONGEST_LINE,
            start_new_session=True,
        )
        assert self._process.stderr is not None
        self._errors = asyncio.create_task(self._process.stderr.read())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def lines(self) -> AsyncIterator[str]:
        """Its output, line by line, until it ends."""
        assert self._process is not None
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            yield line.decode("utf-8", "replace").rstrip("\n")

    async def ended(self) -> tuple[int, str]:
        """Wait for its end: the exit code, and what it said about an error; empty if there was none, such as after a note about a file that it wrote."""
        assert self._process is not None
        assert self._errors is not None
        text = (await self._errors).decode("utf-8", "replace")
        code = await self._process.wait()
        if not code:
            return code, ""
        # The last message is the reason; it may have more lines, such as what a target wrote before it ended.
        _, ours, message = f"\n{text}".rpartition(f"\n{_OURS}")
        return code, message.strip() if ours else text.strip()[-_OTHERS_KEPT:]

    async def stop(self) -> None:
        """Stop it as Ctrl-C does: it writes its results and stops what it started. If that takes too long, it is killed."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_SECONDS_TO_STOP):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

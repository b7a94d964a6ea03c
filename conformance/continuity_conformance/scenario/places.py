"""Places on a server: whoever plays several scenarios inside one takes a place for each of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol


class Places(Protocol):
    """The places of one server."""

    def one(self) -> AbstractAsyncContextManager[None]:
        """A place, as soon as one is free."""
        ...


class OnePlace:
    """The only place of somebody who has a server alone: one scenario plays at a time."""

    def __init__(self) -> None:
        self._place = asyncio.Lock()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        async with self._place:
            yield

"""Plain calls that wait for PostgreSQL: the turn waits, the event loop does not.

The code of a turn reads the store with plain calls, which is right for SQLite. `greenback` lets such a call wait inside a coroutine as `await` does, in every request
that is answered inside `run_waiting`. So there is one code of a turn for both stores.
"""

from collections.abc import Awaitable
from typing import Final, TypeVar

import greenback

T = TypeVar("T")

run_waiting: Final = greenback.with_portal_run
"""Run a coroutine function with these arguments. Plain calls inside it may wait."""


def waited(awaitable: Awaitable[T]) -> T:
    """Wait for something in a plain call. Other requests go on meanwhile."""
    return greenback.await_(awaitable)

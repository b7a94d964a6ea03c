"""Fewer garbage collections while a run plays: it keeps every exchange to its end, and each collection would look at all of them again."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_THRESHOLDS: Final = (100_000, 50, 100)
"""Python's own are 700, 10 and 10. With these, what is garbage stays for some megabytes longer."""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect rarely inside the block, and never what was loaded before it."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()

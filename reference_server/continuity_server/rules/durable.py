"""DURABLE: when a turn counts as stored. There is nothing to decide, so this is data.

DURABLE-02: an answered turn survives a kill of the process and a loss of power, so the store commits before the agent answers, with this SQLite setting, or syncs its log itself (`store/wal.py`).
DURABLE-03: a turn is one transaction, so a kill in the middle leaves none of it, and nothing that a later start could run again.
"""

from typing import Final

SYNCHRONOUS: Final = "FULL"

"""Every rule of the contract, in one class of small methods.

What h11's `_state.py` is to HTTP: everything that decides which session a turn is in, what the model sees, what is stored and what the client is told
lives here and in the seven modules it is made of. Nothing here knows aiohttp, SQLite or a model. A defect is a subclass that overrides one method.
"""

import secrets

from continuity_server.derivation import Derivation
from continuity_server.echo import Echo
from continuity_server.environment import Environment
from continuity_server.history import History
from continuity_server.legacy import Legacy
from continuity_server.lineage import Lineage
from continuity_server.slugs import Slugs


class Rules(Derivation, Echo, History, Lineage, Slugs, Legacy, Environment):
    """The contract: DERIVE, ECHO, HISTORY, COMPRESS, SLUG, MIGRATE and ENV."""

    def minted(self, prefix: str) -> str:
        """ISOLATE-08: a minted id has 128 random bits."""
        return f"{prefix}{secrets.token_hex(16)}"

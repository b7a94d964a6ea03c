"""Every rule of the contract, in one class of small methods.

What h11's `_state.py` is to HTTP: everything that decides which session a turn is in, what the model sees, what is stored and what the client is told
lives in the modules that it is made of. Nothing here knows aiohttp, SQLite or a model. A defect is a subclass that overrides one method.
"""

from continuity_server.borders import Borders
from continuity_server.concurrency import Concurrency
from continuity_server.deletion import Deletion
from continuity_server.derivation import Derivation
from continuity_server.discovery import Discovery
from continuity_server.durability import Durability
from continuity_server.echo import Echo
from continuity_server.environment import Environment
from continuity_server.history import History
from continuity_server.isolation import Isolation
from continuity_server.legacy import Legacy
from continuity_server.lineage import Lineage
from continuity_server.slugs import Slugs
from continuity_server.streams import Streams


class Rules(
    Derivation,
    Echo,
    History,
    Lineage,
    Slugs,
    Legacy,
    Environment,
    Streams,
    Isolation,
    Durability,
    Concurrency,
    Deletion,
    Discovery,
    Borders,
):
    """The contract: a base class for each area of it. ERROR is a table, in `errors.py`."""

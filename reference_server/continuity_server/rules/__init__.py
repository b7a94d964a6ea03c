"""Every rule of the contract, in one class of small methods.

What h11's `_state.py` is to HTTP: everything that decides which session a turn is in, what the model sees, what is stored and what the client is told
lives in the modules that it is made of. Nothing here knows aiohttp, SQLite or a model. A defect is a subclass that overrides one method.
"""

from continuity_server.rules.compress import CompressRules
from continuity_server.rules.concur import ConcurRules
from continuity_server.rules.contract import ContractRules
from continuity_server.rules.delete import DeleteRules
from continuity_server.rules.derive import DeriveRules
from continuity_server.rules.discover import DiscoverRules
from continuity_server.rules.durable import DurableRules
from continuity_server.rules.echo import EchoRules
from continuity_server.rules.env import EnvRules
from continuity_server.rules.history import HistoryRules
from continuity_server.rules.isolate import IsolateRules
from continuity_server.rules.migrate import MigrateRules
from continuity_server.rules.slug import SlugRules
from continuity_server.rules.stream import StreamRules


class Rules(
    DeriveRules,
    EchoRules,
    HistoryRules,
    CompressRules,
    SlugRules,
    MigrateRules,
    EnvRules,
    StreamRules,
    IsolateRules,
    DurableRules,
    ConcurRules,
    DeleteRules,
    DiscoverRules,
    ContractRules,
):
    """The contract: a base class for each area of it. ERROR is a table, in `errors.py`."""

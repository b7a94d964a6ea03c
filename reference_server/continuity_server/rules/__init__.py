"""The contract, as small pure methods: which session a turn is in, what the model sees, what is stored, what the client gets.

There is one file per area, with the name that the area has in the spec. Nothing here knows aiohttp, SQLite or a model, so every rule can be tested with plain values.
"""

from continuity_server.rules.compress import CompressRules
from continuity_server.rules.concur import ConcurRules
from continuity_server.rules.contract import ContractRules
from continuity_server.rules.delete import DeleteRules
from continuity_server.rules.derive import DeriveRules
from continuity_server.rules.discover import DiscoverRules
from continuity_server.rules.echo import EchoRules
from continuity_server.rules.env import EnvRules
from continuity_server.rules.error import ErrorRules
from continuity_server.rules.history import HistoryRules
from continuity_server.rules.isolate import IsolateRules
from continuity_server.rules.migrate import MigrateRules
from continuity_server.rules.slug import SlugRules
from continuity_server.rules.stream import StreamRules
from continuity_server.settings import Options


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
    ConcurRules,
    DeleteRules,
    DiscoverRules,
    ContractRules,
    ErrorRules,
):
    """All rules, under the options of one server. DURABLE has no decision to make: it is a setting, in `durable.py`."""

    def __init__(self, options: Options) -> None:
        self.options = options

"""A turn on its way through the server: what is asked, where it lands, what comes out. Data only."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from continuity_server.model.types import Usage
from continuity_server.rules.compress import Covered, Session
from continuity_server.rules.echo import SessionInfo, Surface
from continuity_server.rules.messages import Message
from continuity_server.store.records import StoredResponse


@dataclass(frozen=True, slots=True)
class TurnOutput:
    """What a turn made: its messages (calls, results, answer), the text for the client and the calls left to it."""

    messages: tuple[Message, ...]
    text: str
    client_calls: tuple[dict[str, Any], ...] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A request for a turn, as both endpoints translate it. `shape` makes the body of the answer."""

    surface: Surface
    principal: str
    messages: list[Message]
    shape: Callable[[TurnOutput, SessionInfo], dict[str, Any]]
    answer_id: str
    model: str
    body: dict[str, Any]
    header: str | None = None
    slug: str | None = None
    previous: str | None = None
    store: bool = True
    stream: bool = False
    include_usage: bool = False
    tools: list[dict[str, Any]] = field(default_factory=list)
    sampling: dict[str, Any] = field(default_factory=dict)
    idempotency_key: str | None = None
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a turn lands: the tip that it writes, the session that it reads (the same), and how the client named it.

    `late`: the session was born while the request waited. `old_slug`: no turn of ours was in its slug yet.
    """

    owner: str
    tip: str
    root: str
    sent: str | None = None
    derived: bool = False
    session: Session | None = None
    slug: str | None = None
    old_slug: bool = False
    response_gone: bool = False
    late: bool = False
    branch_from: tuple[Session, StoredResponse] | None = None
    chain: str = ""
    lost: bool = False


@dataclass(frozen=True, slots=True)
class TurnInput:
    """What a turn starts from: the stored history, what comes before its input, the input, this turn's system prompts."""

    stored: list[Message]
    before: list[Message]
    new: list[Message]
    prompts: list[Message] = field(default_factory=list)
    covered: Covered | None = None
    degraded: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answered turn: the body, and what the header tells."""

    body: dict[str, Any]
    told: SessionInfo
    replayed: bool = False


class Sink(Protocol):
    """Where the text of a streamed turn goes while it is made."""

    @property
    def gone(self) -> bool:
        """Tell whether the client was seen to have hung up."""

    async def text(self, told: SessionInfo, delta: str) -> None:
        """Send a piece; the first one opens the stream."""


class NoSink:
    """A plain turn: nothing is sent until the answer is whole."""

    gone = False

    async def text(self, told: SessionInfo, delta: str) -> None:
        pass

"""A turn on its way through the server: what is requested, where it goes, what comes out. Data only."""

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
    """What a turn produced: its messages (tool calls, results, answer), the text for the client and the calls that the client must answer. `cut`: the model reached its greatest length."""

    messages: tuple[Message, ...]
    text: str
    client_calls: tuple[dict[str, Any], ...] = ()
    usage: Usage = field(default_factory=Usage)
    cut: bool = False


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
    """Where a turn goes: the session that it is written to (`tip`), the one that it is read from, and how the client named it.

    `chain` is the root of the chain whose turns run one after the other. `lost`: the lineage cannot be read now.
    """

    owner: str
    tip: str
    root: str
    sent: str | None = None
    derived: bool = False
    session: Session | None = None
    slug: str | None = None
    response_gone: bool = False
    branch_from: tuple[Session, StoredResponse] | None = None
    chain: str = ""
    lost: bool = False

    @property
    def covered(self) -> Covered | None:
        """The messages that the summary in the session's history replaces."""
        return self.session.covered if self.session else None


@dataclass(frozen=True, slots=True)
class TurnInput:
    """What a turn starts from: the stored history, the messages before the new input, the new input, this turn's system prompts."""

    stored: list[Message]
    before: list[Message]
    new: list[Message]
    prompts: list[Message] = field(default_factory=list)
    covered: Covered | None = None
    degraded: bool = False


class Sink(Protocol):
    """Where the text of a streamed turn goes while the model writes it."""

    @property
    def gone(self) -> bool:
        """Whether the client has hung up."""

    async def text(self, session_info: SessionInfo, delta: str) -> None:
        """Send a piece of text. The first piece opens the stream."""


class NoSink:
    """A turn that is not streamed: nothing is sent until the answer is complete."""

    gone = False

    async def text(self, session_info: SessionInfo, delta: str) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn, once its session is found and its history read: everything that it takes to answer it."""

    request: TurnRequest
    destination: Destination
    input: TurnInput
    session_info: SessionInfo
    sink: Sink


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answered turn: the body, and the session for the headers."""

    body: dict[str, Any]
    session_info: SessionInfo
    replayed: bool = False

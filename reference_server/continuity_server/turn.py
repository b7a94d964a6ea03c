"""A turn on its way through the server: what is asked, where it lands, what comes out. Data only."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from continuity_server.derivation import Message
from continuity_server.echo import Surface, Told
from continuity_server.lineage import Covered, Session
from continuity_server.records import StoredResponse


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the model reported them, or estimated."""

    prompt: int = 0
    completion: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.prompt + other.prompt, self.completion + other.completion)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said in one call."""

    text: str
    tool_calls: tuple[dict[str, Any], ...] = ()
    usage: Usage = Usage()

    def message(self) -> Message:
        if not self.tool_calls:
            return {"role": "assistant", "content": self.text}
        return {"role": "assistant", "content": self.text or None, "tool_calls": list(self.tool_calls)}


@dataclass(frozen=True, slots=True)
class Made:
    """What a turn made: its messages (calls, results, answer), the text for the client and the calls left to it."""

    messages: tuple[Message, ...]
    text: str
    client_calls: tuple[dict[str, Any], ...] = ()
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for a turn, as both endpoints translate it. `shape` makes the body of the answer."""

    surface: Surface
    principal: str
    messages: list[Message]
    shape: Callable[[Made, Told], dict[str, Any]]
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
class Place:
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
class View:
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
    told: Told
    replayed: bool = False


class Sink(Protocol):
    """Where the text of a streamed turn goes while it is made."""

    @property
    def gone(self) -> bool:
        """Tell whether the client was seen to have hung up."""

    async def text(self, told: Told, delta: str) -> None:
        """Send a piece; the first one opens the stream."""


class NoSink:
    """A plain turn: nothing is sent until the answer is whole."""

    gone = False

    async def text(self, told: Told, delta: str) -> None:
        pass

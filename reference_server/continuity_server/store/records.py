"""What the store keeps, as frozen records. A `Write` is one turn: all of it is stored, or none."""

from dataclasses import dataclass
from typing import Any

from continuity_server.rules.compress import Covered
from continuity_server.rules.messages import Message


@dataclass(frozen=True, slots=True)
class HistoryWrite:
    """Messages for one session. They are appended, or replace what it has."""

    session: str
    root: str
    messages: tuple[Message, ...]
    replace: bool = False
    parent: str | None = None
    kind: str = "session"
    covered: Covered | None = None


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response, and the place in its session's history that it reached. `body` is None if the row cannot be read."""

    id: str
    session: str | None
    epoch: int
    upto: int
    body: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class StoredSlug:
    """A slug. `session` is None if it is of the old schema and its response is gone, so that nobody knows its session."""

    session: str | None
    response_gone: bool


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """A slug that the server named itself: the object that a client gets for it."""

    id: str
    created: int
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SlugWrite:
    """The session that a slug is in from now on."""

    name: str
    session: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The session that this turn's compression ends, and why."""

    parent: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Replay:
    """An answer stored under an Idempotency-Key. `scope` is the chain that the request selected, `root` the one it ended in."""

    owner: str
    scope: str
    key: str
    fingerprint: str
    root: str
    header: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Write:
    """One turn, or a change by the control API. Everything in it is committed together."""

    owner: str
    history: HistoryWrite
    ended: Ended | None = None
    compressed_on_request: str | None = None  # the session whose mark from the `compress` control this turn removes
    response: tuple[str, dict[str, Any]] | None = None
    previous: str | None = None  # the response that this turn continued from, so it was used just now
    slug: SlugWrite | None = None
    replay: Replay | None = None
    max_responses: int = 1000

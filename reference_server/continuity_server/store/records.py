"""What the store keeps, as frozen records. A `Write` is one turn: all of it is stored, or none."""

from dataclasses import dataclass
from typing import Any

from continuity_server.rules.compress import Covered
from continuity_server.rules.messages import Message


@dataclass(frozen=True, slots=True)
class HistoryWrite:
    """Messages for one session: appended, or in place of what it has. `line` is the name that they are kept under."""

    session: str
    root: str
    line: str
    messages: tuple[Message, ...]
    replace: bool = False
    parent: str | None = None
    kind: str = "session"
    covered: Covered | None = None


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response that can be read (where it has a body) and continued from: up to which message of its session it reaches."""

    id: str
    session: str | None
    epoch: int
    upto: int
    body: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class StoredSlug:
    """A slug's row. `session` is None where nobody knows it any more; `old`: no turn of ours was in it yet."""

    session: str | None
    old: bool
    response_gone: bool


@dataclass(frozen=True, slots=True)
class SlugWrite:
    """The session that a slug is in from now on; None where only its response tells."""

    name: str
    session: str | None


@dataclass(frozen=True, slots=True)
class Ended:
    """The session that this turn's child goes on from, and why it is ended."""

    parent: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Replay:
    """An answer kept under an Idempotency-Key. `scope` is the chain that the request selected, `root` the one it landed in."""

    owner: str
    scope: str
    key: str
    fingerprint: str
    root: str
    header: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cache:
    """How many responses of a principal are kept, and whether an evicted one takes its slug along."""

    responses: int = 1000
    takes_slugs: bool = False


@dataclass(frozen=True, slots=True)
class Write:
    """One turn, or what a control changes. Everything in it is committed together."""

    owner: str
    history: HistoryWrite
    ended: Ended | None = None
    uncompress: str | None = None  # the session whose `compress` control is used up
    response: tuple[str, dict[str, Any]] | None = None
    previous: str | None = None  # the response that was continued from, and so was used just now
    slug: SlugWrite | None = None
    replay: Replay | None = None
    cache: Cache = Cache()

    @property
    def session(self) -> tuple[str, str]:
        return self.owner, self.history.session

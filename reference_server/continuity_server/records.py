"""What the store keeps, as frozen records. A `Write` is one turn: all of it is stored, or none."""

from dataclasses import dataclass
from typing import Any

from continuity_server.derivation import Message
from continuity_server.lineage import Covered


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
    """A response that can be read and continued from: up to which message of its session it reaches."""

    id: str
    session: str
    epoch: int
    upto: int
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Replay:
    """An answer kept under an Idempotency-Key. `scope` is the chain that the request selected, `root` the one it landed in."""

    scope: str
    key: str
    fingerprint: str
    root: str
    header: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Write:
    """One turn, or what a control changes. Everything in it is committed together."""

    owner: str
    history: HistoryWrite
    ended: str | None = None  # the parent that this turn's compression ended
    uncompress: str | None = None  # the session whose `compress` control is used up
    response: tuple[str, dict[str, Any]] | None = None
    slug: str | None = None
    replay: Replay | None = None
    max_responses: int = 1000

    @property
    def session(self) -> tuple[str, str]:
        return self.owner, self.history.session

"""Defects of CONCUR: turns that cross each other, sessions that mix, and one that stops them all."""

from collections.abc import Callable, Sequence

from continuity_server.defects.durable import KillLeavesHalfTurn
from continuity_server.defects.registry import defect
from continuity_server.rules import Rules
from continuity_server.rules.error import Case, Kind, Refusal
from continuity_server.rules.history import Unanswered
from continuity_server.rules.messages import Message, Messages


@defect(
    "turns-share-a-base",
    "Turns of one session at once do not wait for each other: none sees the others.",
    "ogx 1.5.0",
)
class TurnsShareABase(Rules):
    def chain_lock(self, owner: str, chain: str, request: str) -> tuple[str, str, str]:  # noqa: ARG002 - that is the defect
        return ("turn", owner, request)

    def slug_lock(self, principal: str, slug: str | None, request: str) -> tuple[str, str, str]:  # noqa: ARG002 - nor by slug
        return ("request", principal, request)


@defect(
    "turns-interleave",
    "Turns of one session at once are stored as they come: user, user, answer, answer.",
    "hermes-agent 0.19.0",
)
class TurnsInterleave(KillLeavesHalfTurn, TurnsShareABase):
    """Neither do they wait, nor is a turn stored as a whole."""


@defect(
    "rejected-turn-stored",
    "A turn that was rejected because its session was busy is stored all the same.",
    under={"turns": "reject"},
)
class RejectedTurnStored(Rules):
    def left_behind(self, new: Sequence[Message], why: Unanswered) -> Messages:
        return list(new) if why is Unanswered.BUSY else []


@defect(
    "turns-at-once-are-500",
    "Of several turns of one session at once one is answered, the others are a 500, and what they said stays.",
    "google-adk 2.13",
)
class TurnsAtOnceAre500(Rules):
    def rejects(self) -> bool:
        return True

    def error_kind(self, case: Case) -> Kind:
        return super().error_kind(Case.INTERNAL if case is Case.SESSION_BUSY else case)

    def left_behind(self, new: Sequence[Message], why: Unanswered) -> Messages:
        return list(new) if why is Unanswered.BUSY else []


@defect(
    "turns-stored-as-the-latest-said",
    "What the user said is kept in one place for all requests: a turn is stored with the words of whoever came last.",
)
class TurnsStoredAsTheLatestSaid(Rules):
    _latest: Messages

    def new_input(self, messages: Sequence[Message]) -> Messages:
        self._latest = super().new_input(messages)
        return self._latest

    def response_input(self, messages: Sequence[Message]) -> Messages:
        self._latest = super().response_input(messages)
        return self._latest

    def stored_turn(self, new: Sequence[Message], made: Sequence[Message]) -> Messages:  # noqa: ARG002 - that is the defect
        return [*self._latest, *made]


@defect(
    "session-told-of-the-latest-request",
    "The id that a client sent is kept in one place for all requests: an answer tells that of whoever came last.",
)
class SessionToldOfTheLatestRequest(Rules):
    _latest: str | None = None

    def chosen_id(self, sent: str | None, derived: Callable[[], str | None]) -> tuple[str | None, bool]:
        self._latest = sent
        return super().chosen_id(sent, derived)

    def told_id(self, sent: str | None, root: str, tip: str) -> str:
        told = super().told_id(sent, root, tip)
        return self._latest if sent is not None and told == sent and self._latest is not None else told


@defect("one-lock-for-all-sessions", "A turn waits for every other turn of the server, whatever its session.")
class OneLockForAllSessions(Rules):
    def chain_lock(self, owner: str, chain: str, request: str) -> tuple[str, str, str]:  # noqa: ARG002 - that is the defect
        return ("all", "", "")


@defect("one-lock-for-all-slugs", "A turn of a slug waits for the turns of every other slug.")
class OneLockForAllSlugs(Rules):
    def slug_lock(self, principal: str, slug: str | None, request: str) -> tuple[str, str, str]:
        return super().slug_lock(principal, "all" if slug is not None else None, request)


@defect(
    "first-requests-race-to-500",
    "Of several first requests of one session at once, only one can make it; the others are a 500.",
    "openclaw 2026.9.6",
)
class FirstRequestsRaceTo500(Rules):
    def overwrites(self, *, slug: bool, late: bool) -> bool:
        if late and not slug:
            raise Refusal(Case.INTERNAL, "The server has a defect.")
        return False


@defect(
    "first-requests-overwrite-each-other",
    "Of several first requests with one new id at once, each writes over what the ones before it left.",
    "adk-python#1733",
)
class FirstRequestsOverwriteEachOther(Rules):
    def overwrites(self, *, slug: bool, late: bool) -> bool:
        return late and not slug


@defect("busy-without-retry-after", "A busy session does not say when to come again.", under={"turns": "reject"})
class BusyWithoutRetryAfter(Rules):
    def retry_after(self) -> int | None:
        return None


@defect(
    "busy-session-queues",
    "Turns of a busy session wait, although it was said that they are rejected.",
    under={"turns": "reject"},
)
class BusySessionQueues(Rules):
    def rejects(self) -> bool:
        return False

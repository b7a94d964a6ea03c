"""Defects of COMPRESS: conversations that split, lose what was said or lose their way when the context is compressed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from continuity_server.defects.registry import defect
from continuity_server.rules import Rules
from continuity_server.rules.compress import COMPRESSION, FORK, Covered, P, Session
from continuity_server.rules.echo import Event, SessionInfo
from continuity_server.rules.error import Case, Refusal
from continuity_server.rules.messages import Message, Messages
from continuity_server.settings import Options


def _rotated(session: Mapping[str, Any]) -> bool:
    return bool((session.get("session") or {}).get("rotated_from"))


@defect(
    "rotation-answers-old-id", "A plain answer whose turn rotated the session tells the old id.", "hermes-agent#16938"
)
class RotationAnswersOldId(Rules):
    def final_told(self, before: SessionInfo, after: SessionInfo, *, streamed: bool) -> SessionInfo:
        return after if streamed else before


@defect(
    "stale-parent-reads-old-history",
    "A turn sent with a stale parent id sees the uncompressed history; it is written to the tip.",
    "hermes-agent#16938",
)
class StaleParentReadsOldHistory(Rules):
    def read_from(self, start: Session, tip: Session) -> Session:  # noqa: ARG002 - that is the defect
        return start


@defect("stale-parent-forks", "A turn sent with a stale parent id starts another session.", "hermes-agent#44004")
class StaleParentForks(Rules):
    def written_to(self, start: Session, tip: Session, *, derived: bool) -> Session:
        if derived or start.id == tip.id:
            return tip
        fork = self.minted("sess_")
        return Session(fork, fork, parent=start.id, kind=FORK)


@defect(
    "stale-parent-writes-old-session",
    "A turn sent with a stale parent id is written to the parent; it sees the history of the tip.",
    "hermes-agent#16938",
)
class StaleParentWritesOldSession(Rules):
    def written_to(self, start: Session, tip: Session, *, derived: bool) -> Session:
        return tip if derived else start


@defect(
    "stale-parent-goes-on",
    "A stale parent id is not resolved at all: its turns go on in the uncompressed parent.",
    "hermes-agent 0.16.0",
)
class StaleParentGoesOn(StaleParentReadsOldHistory, StaleParentWritesOldSession):
    """Neither reading nor writing finds the tip."""


@defect(
    "stale-parent-bears-a-child-each-turn",
    "Every turn by a stale parent id compresses the parent once more, and bears another child.",
    "hermes-agent 0.17.0",
)
class StaleParentBearsAChildEachTurn(StaleParentGoesOn):
    def compression_due(self, session: Session | None, messages: Sequence[Message], limit: int) -> bool:
        stale = session is not None and session.next is not None
        return stale or super().compression_due(session, messages, limit)


@defect("tip-resolved-one-hop", "Of a chain of rotations only one is followed.")
class TipResolvedOneHop(Rules):
    def tip(self, start: Session, read: Callable[[str], Session | None]) -> Session:
        return (read(start.next) if start.next is not None else None) or start


@defect("tip-resolved-from-root-only", "Only the first id of a chain leads to the tip; later ones stay where they are.")
class TipResolvedFromRootOnly(Rules):
    def tip(self, start: Session, read: Callable[[str], Session | None]) -> Session:
        return super().tip(start, read) if start.id == start.root else start


@defect("fork-followed-as-tip", "A fork or a branch is taken for what its parent went on as.")
class ForkFollowedAsTip(Rules):
    def is_successor(self, kind: str) -> bool:  # noqa: ARG002 - that is the defect
        return True


@defect("lineage-cycle-hangs", "A cycle in the lineage is followed round and round, and the request never ends.")
class LineageCycleHangs(Rules):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._steps = 0

    def tip(self, start: Session, read: Callable[[str], Session | None]) -> Session:
        end = super().tip(start, read)
        if end.next is None or read(end.next) is None:
            return end
        # Every look ends elsewhere in the circle, so that the landing of the turn looks again, for good.
        self._steps += 1
        return replace(end, root=f"{end.root} {self._steps}")


@defect("lineage-gap-is-500", "A missing link in the lineage makes every turn of that chain a 500.")
class LineageGapIs500(Rules):
    def tip(self, start: Session, read: Callable[[str], Session | None]) -> Session:
        end = super().tip(start, read)
        if end.next is not None and read(end.next) is None:
            raise Refusal(Case.INTERNAL, "The server has a defect.")
        return end


@defect(
    "stream-never-tells-tip", "A stream whose turn rotated the session tells the new id nowhere.", "hermes-agent#16938"
)
class StreamNeverTellsTip(Rules):
    def final_told(self, before: SessionInfo, after: SessionInfo, *, streamed: bool) -> SessionInfo:
        return before if streamed else after


@defect(
    "stream-tells-tip-after-done", "A chat stream tells the new id only after its end marker, where nobody reads on."
)
class StreamTellsTipAfterDone(Rules):
    def chat_end(self, events: Sequence[Event]) -> list[Event | None]:
        late: list[Event] = [(None, {**chunk, "choices": []}) for _, chunk in events if _rotated(chunk)]
        bare = [(name, {**chunk, "session": None} if _rotated(chunk) else chunk) for name, chunk in events]
        quiet = [(name, {key: said for key, said in chunk.items() if said is not None}) for name, chunk in bare]
        return [*quiet, None, *late] if late else super().chat_end(events)


@defect(
    "stream-tells-tip-in-named-event",
    "A chat stream tells the new id in an event of its own, which clients read as a chunk without choices.",
)
class StreamTellsTipInNamedEvent(Rules):
    def last_chunks(self, finish: Mapping[str, Any], session: Mapping[str, Any]) -> list[Event]:
        if not _rotated(session):
            return super().last_chunks(finish, session)
        return [("hermes.session", dict(session)), (None, dict(finish))]


@defect("rotating-turn-lost", "The turn in which the history was compressed is in neither the summary nor the history.")
class RotatingTurnLost(Rules):
    def compacted(self, before: Sequence[Message], summary: str, turn: Sequence[Message]) -> Messages:  # noqa: ARG002 - that is the defect
        return super().compacted(before, summary, ())


@defect("parent-not-ended", "The rotated parent does not say that it is ended.")
class ParentNotEnded(Rules):
    def end_reason(self, kind: str) -> str | None:  # noqa: ARG002 - that is the defect
        return None


@defect("child-without-parent", "The child of a rotation does not name its parent.", "hermes-agent#16517")
class ChildWithoutParent(Rules):
    def child_parent(self, parent: str) -> str | None:  # noqa: ARG002 - that is the defect
        return None


@defect(
    "rotation-race-two-children",
    "A turn that waited while its session rotated goes on from where it first looked, and bears a second child.",
    "hermes-agent#44004",
)
class RotationRaceTwoChildren(Rules):
    def landing(self, looked: P, look_again: Callable[[], P]) -> P:  # noqa: ARG002 - that is the defect
        return looked


@defect("failed-compression-loses-history", "Where the summary fails, the history is dropped without one.")
class FailedCompressionLosesHistory(Rules):
    def unsummarised(self, before: Sequence[Message], turn: Sequence[Message]) -> Messages | None:  # noqa: ARG002 - that is the defect
        return list(turn)


@defect("failed-compression-is-500", "Where the summary fails, the turn is a 500.")
class FailedCompressionIs500(Rules):
    def unsummarised(self, before: Sequence[Message], turn: Sequence[Message]) -> Messages | None:  # noqa: ARG002 - that is the defect
        raise Refusal(Case.INTERNAL, "The server has a defect.")


@defect(
    "derived-child-every-turn",
    "Once a derived conversation was compressed, every turn compresses it again and moves it to another id.",
    "hermes-agent 0.16.0",
)
class DerivedChildEveryTurn(Rules):
    def compression_due(self, session: Session | None, messages: Sequence[Message], limit: int) -> bool:
        derived = session is not None and session.root.startswith(("api-", "api2-"))
        again = derived and session is not None and session.kind == COMPRESSION
        return again or super().compression_due(session, messages, limit)


@defect(
    "derived-returns-to-root",
    "A derived conversation whose session rotated goes back to the first session on its next turn.",
    "hermes-agent 0.19.0",
)
class DerivedReturnsToRoot(Rules):
    def written_to(self, start: Session, tip: Session, *, derived: bool) -> Session:
        return start if derived else tip


@defect(
    "in-place-rotates",
    "The session moves to a new id although compaction is in-place.",
    under={"compaction": "in-place"},
)
class InPlaceRotates(Rules):
    def rotates(self) -> bool:
        return True


@defect(
    "in-place-keeps-everything",
    "Compressing in place leaves the history as it was.",
    under={"compaction": "in-place"},
)
class InPlaceKeepsEverything(Rules):
    def compacted(self, before: Sequence[Message], summary: str, turn: Sequence[Message]) -> Messages:
        return super().compacted(before, summary, turn) if self.rotates() else [*before, *turn]


@defect("child-of-another-principal", "The child of a rotation belongs to nobody who could continue it.")
class ChildOfAnotherPrincipal(Rules):
    def child_owner(self, owner: str) -> str:
        return f"{owner}, compressed"


@defect("child-loses-slug", "When its session rotates a slug is lost, and starts another session.")
class ChildLosesSlug(Rules):
    def slug_follows(self, before: str, after: str) -> str:
        return after if before == after else self.minted("sess_")


@defect(
    "derived-body-sent-whole-again",
    "After a compression a derived turn sends the model the whole body again.",
    "open-webui#27174",
)
class DerivedBodySentWholeAgain(Rules):
    def without_covered(
        self,
        body: Sequence[Message],  # noqa: ARG002 - that is the defect
        stored: Sequence[Message],  # noqa: ARG002
        covered: Covered | None,  # noqa: ARG002
    ) -> Messages | None:
        return None

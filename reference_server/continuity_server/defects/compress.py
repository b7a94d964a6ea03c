"""Defects of COMPRESS: conversations that split, lose what was said or lose their way when the context is compressed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from continuity_server.defects.registry import defect
from continuity_server.rules import Rules
from continuity_server.rules.compress import COMPRESSION, Covered, Session
from continuity_server.rules.echo import SessionInfo
from continuity_server.rules.error import Case, Refusal
from continuity_server.rules.messages import Message, Messages
from continuity_server.rules.stream import Event
from continuity_server.store.records import Ended, HistoryWrite, SlugWrite, Write
from continuity_server.store.store import Store
from continuity_server.turn.agent import Agent
from continuity_server.turn.commit import Committer
from continuity_server.turn.locks import Held
from continuity_server.turn.resolve import Resolver
from continuity_server.turn.summarise import Compression
from continuity_server.turn.types import Destination, Turn, TurnOutput, TurnRequest

Chunk = Mapping[str, Any]
_STEP_SECONDS = 0.01


def _rotated(session: Chunk) -> bool:
    return bool((session.get("session") or {}).get("rotated_from"))


@defect(
    "rotation-answers-old-id", "A plain answer whose turn rotated the session tells the old id.", "hermes-agent#16938"
)
class RotationAnswersOldId(Agent):
    def _info_after(self, turn: Turn, tip: str) -> SessionInfo:
        return super()._info_after(turn, tip) if turn.request.stream else turn.session_info


@defect(
    "stale-parent-reads-old-history",
    "A turn sent with a stale parent id sees the uncompressed history; it is written to the tip.",
    "hermes-agent#16938",
)
class StaleParentReadsOldHistory(Resolver):
    def _continued(self, start: Session, tip: Session, *, derived: bool) -> Destination:
        return replace(super()._continued(start, tip, derived=derived), session=start)


@defect("stale-parent-forks", "A turn sent with a stale parent id starts another session.", "hermes-agent#44004")
class StaleParentForks(Resolver):
    def _continued(self, start: Session, tip: Session, *, derived: bool) -> Destination:
        destination = super()._continued(start, tip, derived=derived)
        if derived or start.id == tip.id:
            return destination
        fork = self._rules.minted("sess_")
        return replace(destination, tip=fork, root=fork)


@defect(
    "stale-parent-writes-old-session",
    "A turn sent with a stale parent id is written to the parent; it sees the history of the tip.",
    "hermes-agent#16938",
)
class StaleParentWritesOldSession(Resolver):
    def _continued(self, start: Session, tip: Session, *, derived: bool) -> Destination:
        destination = super()._continued(start, tip, derived=derived)
        return destination if derived else replace(destination, tip=start.id, root=start.root)


@defect(
    "stale-parent-goes-on",
    "A stale parent id is not resolved at all: its turns go on in the uncompressed parent.",
    "hermes-agent 0.16.0",
)
class StaleParentGoesOn(StaleParentReadsOldHistory, StaleParentWritesOldSession):
    """Neither reading nor writing finds the tip."""


class _StaleParentIsDue(Rules):
    def compression_due(self, session: Session | None, messages: Sequence[Message], limit: int) -> bool:
        stale = session is not None and session.next is not None
        return stale or super().compression_due(session, messages, limit)


@defect(
    "stale-parent-bears-a-child-each-turn",
    "Every turn by a stale parent id compresses the parent once more, and bears another child.",
    "hermes-agent 0.17.0",
    also=(_StaleParentIsDue,),
)
class StaleParentBearsAChildEachTurn(StaleParentGoesOn):
    """The parent goes on, and is always due for compression."""


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
class LineageCycleHangs(Agent):
    @asynccontextmanager
    async def _locked(self, request: TurnRequest) -> AsyncIterator[Destination]:
        at = self._resolver.destination(request).session
        while at is not None and at.next is not None:
            await asyncio.sleep(_STEP_SECONDS)
            at = self._store.session(at.owner, at.next)
        async with super()._locked(request) as destination:
            yield destination


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
class StreamNeverTellsTip(Agent):
    def _info_after(self, turn: Turn, tip: str) -> SessionInfo:
        return turn.session_info if turn.request.stream else super()._info_after(turn, tip)


@defect(
    "stream-tells-tip-after-done", "A chat stream tells the new id only after its end marker, where nobody reads on."
)
class StreamTellsTipAfterDone(Rules):
    def chat_ending(self, finish: Chunk, session: Chunk, usage: Chunk | None) -> list[Event | None]:
        if not _rotated(session):
            return super().chat_ending(finish, session, usage)
        return [*super().chat_ending(finish, {}, usage), (None, {**finish, **session, "choices": []})]


@defect(
    "stream-tells-tip-in-named-event",
    "A chat stream tells the new id in an event of its own, which clients read as a chunk without choices.",
)
class StreamTellsTipInNamedEvent(Rules):
    def chat_ending(self, finish: Chunk, session: Chunk, usage: Chunk | None) -> list[Event | None]:
        if not _rotated(session):
            return super().chat_ending(finish, session, usage)
        return [("hermes.session", dict(session)), *super().chat_ending(finish, {}, usage)]


@defect(
    "compressing-turn-loses-its-question",
    "In the turn that compresses, the model gets what was said before, and not what the client says now.",
)
class CompressingTurnLosesItsQuestion(Agent):
    async def _ask_model(self, turn: Turn) -> TurnOutput:
        session = turn.destination.session
        if session is None or not session.compress_next:
            return await super()._ask_model(turn)
        lost: Messages = [{"role": "user", "content": "Go on."}]
        return await super()._ask_model(replace(turn, input=replace(turn.input, new=lost)))


@defect("rotating-turn-lost", "The turn in which the history was compressed is in neither the summary nor the history.")
class RotatingTurnLost(Rules):
    def compacted(self, before: Sequence[Message], summary: str, turn: Sequence[Message]) -> Messages | None:  # noqa: ARG002 - that is the defect
        return super().compacted(before, summary, ())


@defect("parent-not-ended", "The rotated parent does not say that it is ended.")
class ParentNotEnded(Committer):
    def ended(self, parent: str, *, kind: str) -> Ended | None:
        ended = super().ended(parent, kind=kind)
        return ended and replace(ended, reason=None)


@defect("child-without-parent", "The child of a rotation does not name its parent.", "hermes-agent#16517")
class ChildWithoutParent(Committer):
    def _compressed(self, destination: Destination, write: Write, compression: Compression) -> Write:
        child = super()._compressed(destination, write, compression)
        return replace(child, history=replace(child.history, parent=None))


@defect(
    "rotation-race-two-children",
    "A turn that waited while its session rotated goes on from where it first looked, and bears a second child.",
    "hermes-agent#44004",
)
class RotationRaceTwoChildren(Agent):
    def _confirmed(self, request: TurnRequest, expected: Destination) -> Destination | None:  # noqa: ARG002 - that is the defect
        return expected


@defect("failed-compression-loses-history", "Where the summary fails, the history is dropped without one.")
class FailedCompressionLosesHistory(Rules):
    def compacted(self, before: Sequence[Message], summary: str, turn: Sequence[Message]) -> Messages | None:
        return super().compacted(before, summary, turn) if summary else list(turn)


@defect("failed-compression-is-500", "Where the summary fails, the turn is a 500.")
class FailedCompressionIs500(Rules):
    def compacted(self, before: Sequence[Message], summary: str, turn: Sequence[Message]) -> Messages | None:
        if not summary:
            raise Refusal(Case.INTERNAL, "The server has a defect.")
        return super().compacted(before, summary, turn)


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
class DerivedReturnsToRoot(Resolver):
    def _continued(self, start: Session, tip: Session, *, derived: bool) -> Destination:
        destination = super()._continued(start, tip, derived=derived)
        return replace(destination, tip=start.id, root=start.root) if derived else destination


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
    def compacted(self, before: Sequence[Message], summary: str, turn: Sequence[Message]) -> Messages | None:
        return super().compacted(before, summary, turn) if self.rotates() or not summary else [*before, *turn]


@defect("child-of-another-principal", "The child of a rotation belongs to nobody who could continue it.")
class ChildOfAnotherPrincipal(Committer):
    def _compressed(self, destination: Destination, write: Write, compression: Compression) -> Write:
        child = super()._compressed(destination, write, compression)
        return replace(child, owner=f"{child.owner}, compressed") if self._rules.rotates() else child


class _SlugOfNoSession(Committer):
    def _slug(self, destination: Destination, session: str) -> SlugWrite | None:
        return super()._slug(destination, session if session == destination.tip else self._rules.minted("sess_"))


@defect(
    "child-loses-slug",
    "When its session rotates a slug is lost, and starts another session.",
    also=(_SlugOfNoSession,),
)
class ChildLosesSlug(Resolver):
    def _slug_tip(self, owner: str, session: str) -> Session | None:
        tip = super()._slug_tip(owner, session)
        return tip if tip and tip.id == session else None


@defect(
    "child-loses-slug-of-unnamed-turn",
    "If the turn that rotates does not name the slug of its session, the new session has none.",
)
class ChildLosesSlugOfUnnamedTurn(Store):
    def slug_of(self, owner: str, root: str) -> str | None:
        slug = super().slug_of(owner, root)
        stored = self.slug(owner, slug) if slug is not None else None
        session = self.session(owner, stored.session) if stored is not None and stored.session is not None else None
        return slug if session is not None and session.next is None else None


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


@defect(
    "branch-followed-after-restart",
    "A start repairs missing links between sessions, and takes a branch for the continuation of its origin.",
)
class BranchFollowedAfterRestart(Store):
    _repaired = False

    async def backfill(self) -> None:
        await super().backfill()
        if not self._repaired:
            self._connection.execute(
                "UPDATE sessions AS origin SET next=(SELECT max(id) FROM sessions WHERE owner=origin.owner "
                "AND parent=origin.id) WHERE next IS NULL"
            )
        self._repaired = True


@defect("tip-told-with-texts-only", "A stream that ends with a call of the client's tool does not tell the new id.")
class TipToldWithTextsOnly(Rules):
    def chat_ending(self, finish: Chunk, session: Chunk, usage: Chunk | None) -> list[Event | None]:
        stops = all(choice.get("finish_reason") == "stop" for choice in finish["choices"])
        return super().chat_ending(finish, session if stops else {}, usage)


@defect(
    "open-call-compressed",
    "In the turn that compresses, an open call of the client's tool is left out, and its results with it.",
)
class OpenCallCompressed(Agent):
    async def _ask_model(self, turn: Turn) -> TurnOutput:
        session = turn.destination.session
        if session is None or not session.compress_next:
            return await super()._ask_model(turn)
        closed = [message for message in turn.input.before if not message.get("tool_calls")]
        return await super()._ask_model(replace(turn, input=replace(turn.input, before=closed)))


class _ReadWrittenBack(Committer):
    """Stores the history that a turn has read together with what it adds."""

    def _history(self, turn: Turn, output: TurnOutput) -> HistoryWrite:
        history = super()._history(turn, output)
        if history.replace:
            return history
        whole = (*turn.input.stored, *history.messages)
        return replace(history, messages=whole, replace=True, covered=turn.input.covered)


@defect(
    "chain-locked-by-sent-id",
    "Turns that name one conversation by its old and its new id do not wait for each other, and write over each other.",
    also=(_ReadWrittenBack,),
)
class ChainLockedBySentId(Agent):
    def _chain_lock(self, request: TurnRequest, destination: Destination) -> Held:
        named = replace(destination, chain=request.header or destination.chain)
        return super()._chain_lock(request, named)

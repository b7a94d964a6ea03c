"""Defects of CONTRACT's sequences: rules that break only where two things happen that no scenario puts together, in an order that none has."""

from collections.abc import Callable

from continuity_server.continuity import Rules
from continuity_server.defects.registry import defect
from continuity_server.lineage import BRANCH, Session
from continuity_server.settings import Options
from continuity_server.slugs import Part


@defect("delete-empties-branches", "DELETE of a response takes away what was said in the branches of its session.")
class DeleteEmptiesBranches(Rules):
    def deleted(self) -> frozenset[Part]:
        return super().deleted() | {Part.BRANCHES}


@defect("delete-unanchors-siblings", "After DELETE of a response nobody knows where the others of its session stand.")
class DeleteUnanchorsSiblings(Rules):
    def deleted(self) -> frozenset[Part]:
        return super().deleted() | {Part.ANCHORS}


@defect(
    "evicted-slug-misses-rotation",
    "A slug that went on without its last response does not go along when its session rotates.",
)
class EvictedSlugMissesRotation(Rules):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._alone: set[str] = set()

    def without_response(self, session: str) -> str | None:
        self._alone.add(session)
        return super().without_response(session)

    def slug_follows(self, before: str, after: str) -> str:
        return before if before in self._alone else super().slug_follows(before, after)


@defect(
    "stale-id-follows-branch",
    "The id of a rotated session goes on in a branch that was made from one of its responses since.",
)
class StaleIdFollowsBranch(Rules):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._rotated: set[str] = set()
        self._branches: dict[str, str] = {}

    def branch_session(self, session: str, minted: str) -> str:
        if session in self._rotated:
            self._branches[session] = minted
        return super().branch_session(session, minted)

    def tip(self, start: Session, read: Callable[[str], Session | None]) -> Session:
        if start.next is not None:
            self._rotated.add(start.id)
        return read(self._branches.get(start.id, "")) or super().tip(start, read)


@defect("branch-of-branch-replaces-it", "A branch from an older response of a branch takes its place.")
class BranchOfBranchReplacesIt(Rules):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._born: set[str] = set()

    def branch_session(self, session: str, minted: str) -> str:
        self._born.add(minted)
        return session if session in self._born else super().branch_session(session, minted)


@defect("branch-lost-on-restart", "A branch that an earlier process made is empty when a header names it.")
class BranchLostOnRestart(Rules):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._made: set[str] = set()

    def branch_session(self, session: str, minted: str) -> str:
        self._made.add(minted)
        return super().branch_session(session, minted)

    def read_from(self, start: Session, tip: Session) -> Session:
        lost = tip.kind == BRANCH and tip.id not in self._made
        return Session("", tip.root) if lost else super().read_from(start, tip)

"""Defects of DELETE: what is still there after a session was deleted, and what went that was another's."""

from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import unquote, unquote_plus

from aiohttp import web

from continuity_server.defects.registry import defect
from continuity_server.http.request import answer
from continuity_server.http.sessions import SessionsHandler
from continuity_server.rules import Rules
from continuity_server.rules.compress import Session
from continuity_server.rules.messages import Messages
from continuity_server.store.deletions import Deletions
from continuity_server.store.records import HistoryWrite
from continuity_server.turn.commit import Committer
from continuity_server.turn.resolve import Resolver
from continuity_server.turn.types import Destination, Turn, TurnInput, TurnOutput, TurnRequest


@defect(
    "delete-leaves-messages",
    "A deleted session is unknown until somebody sends its id again, and then it remembers everything.",
)
class DeleteLeavesMessages(Deletions):
    def _messages(self, owner: str, session: str) -> None:
        pass


class _SlugKeepsItsId(Resolver):
    """A slug whose session is gone goes on under the id of that session."""

    def _new_slug(self, request: TurnRequest, slug: str) -> Destination:
        stored = self._store.slug(request.principal, slug)
        if stored is None or stored.session is None:
            return super()._new_slug(request, slug)
        session = stored.session
        return Destination(request.principal, tip=session, root=session, slug=slug, chain=session)


@defect(
    "delete-leaves-slugs",
    "The slugs of a deleted session go on in it.",
    "hermes-agent#42422",
    also=(_SlugKeepsItsId,),
)
class DeleteLeavesSlugs(Deletions):
    def _slugs(self, owner: str, session: str) -> None:
        pass


@defect("delete-leaves-responses", "The responses of a deleted session can still be read.", "hermes-agent 0.16.0")
class DeleteLeavesResponses(Deletions):
    def _responses(self, owner: str, session: str) -> None:
        pass


@defect("delete-leaves-replays", "Replays of a deleted session are still there.")
class DeleteLeavesReplays(Deletions):
    def _replays(self, owner: str, session: str) -> None:
        pass


@defect(
    "delete-leaves-session",
    "DELETE of a session leaves it, without messages.",
)
class DeleteLeavesSession(Deletions):
    def _row(self, owner: str, session: str) -> None:
        pass


@defect(
    "delete-leaves-ancestors",
    "Of a compressed session only the newest id is deleted: the older ones show all.",
    "hermes-agent#48524",
)
class DeleteLeavesAncestors(Rules):
    def deleted_with(self, named: Session, family: Iterable[Session]) -> list[str]:
        chain = super().deleted_with(named, family)
        return chain[chain.index(named.id) :]


@defect(
    "delete-leaves-children",
    "Of a compressed session only what came before is deleted: the summary lives on under the newer ids.",
    "hermes-agent#48524",
)
class DeleteLeavesChildren(Rules):
    def deleted_with(self, named: Session, family: Iterable[Session]) -> list[str]:
        chain = super().deleted_with(named, family)
        return chain[: chain.index(named.id) + 1]


@defect("delete-takes-branches", "DELETE of a session takes its branches along.")
class DeleteTakesBranches(Rules):
    def deleted_with(self, named: Session, family: Iterable[Session]) -> list[str]:  # noqa: ARG002 - that is the defect
        return [session.id for session in family]


@defect(
    "delete-sweeps-replaced-histories",
    "DELETE of a session also removes replaced histories of all others, which stored responses still need.",
)
class DeleteSweepsReplacedHistories(Deletions):
    def _messages(self, owner: str, session: str) -> None:
        super()._messages(owner, session)
        query = (
            "DELETE FROM messages WHERE owner=? AND epoch < "
            "(SELECT epoch FROM sessions WHERE owner=messages.owner AND id=messages.session)"
        )
        self._connection.execute(query, (owner,))


@defect("deleted-session-keeps-its-slug", "A deleted id, used again, has its slug.")
class DeletedSessionKeepsItsSlug(Deletions):
    def _slugs(self, owner: str, session: str) -> None:
        query = "UPDATE conversations SET name=name || ' (deleted)', response_id=NULL WHERE owner=? AND session=?"
        self._connection.execute(query, (owner, session))


@defect("plus-in-path-is-a-blank", "A plus sign in a path is read as a blank.")
class PlusInPathIsABlank(SessionsHandler):
    async def _session(self, request: web.Request) -> Session:
        request.match_info["id"] = unquote_plus(request.raw_path.split("/")[3])
        return await super()._session(request)


@defect("path-decoded-twice", "Ids in paths are decoded twice: `a%2Fb` and `a/b` are one there.")
class PathDecodedTwice(SessionsHandler):
    async def _session(self, request: web.Request) -> Session:
        request.match_info["id"] = unquote(request.match_info["id"])
        return await super()._session(request)


@defect("delete-by-pattern", "DELETE takes the id of a session for a pattern: `user_1` deletes `userX1` too.")
class DeleteByPattern(Deletions):
    def session(self, owner: str, session: str) -> None:
        query = "SELECT id FROM sessions WHERE owner=? AND id LIKE ?"
        for (ident,) in self._connection.execute(query, (owner, session)).fetchall():
            super().session(owner, ident)


class _DeletesAtOnce(SessionsHandler):
    """DELETE that does not wait for the running turn of the session."""

    async def delete(self, request: web.Request) -> web.Response:
        session = await self._session(request)
        await self._delete_environment(session)
        await self._store.delete_sessions(session.owner, self._deleted_with(session))
        return answer({"id": session.id, "object": "session", "deleted": True})


@defect(
    "delete-undone-by-running-turn",
    "DELETE of a session does not wait for its running turn, which then writes the whole history again.",
    also=(_DeletesAtOnce,),
)
class DeleteUndoneByRunningTurn(Committer):
    def _history(self, turn: Turn, output: TurnOutput) -> HistoryWrite:
        history, destination = super()._history(turn, output), turn.destination
        gone = destination.session is not None and self._store.session(destination.owner, destination.tip) is None
        whole = (*turn.input.stored, *history.messages)
        return replace(history, messages=whole, replace=True) if gone else history


@defect(
    "branch-loses-deleted-origin",
    "A branch whose origin is deleted while its first turn runs is stored without what it branched from.",
    also=(_DeletesAtOnce,),
)
class BranchLosesDeletedOrigin(Committer):
    def _branched(self, destination: Destination, turn_input: TurnInput, messages: Messages) -> HistoryWrite:
        history = super()._branched(destination, turn_input, messages)
        gone = history.parent is None or self._store.session(destination.owner, history.parent) is None
        return replace(history, messages=tuple(messages)) if gone else history

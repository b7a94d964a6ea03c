"""Defects of SLUG: slugs that lose their session, share it or are not what was sent, and responses that come back or never were."""

import secrets
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

from continuity_server.defects.concur import LateAgent, LateDestination
from continuity_server.defects.registry import defect
from continuity_server.defects.support.idle import IdleForgettingStore
from continuity_server.rules import Rules
from continuity_server.rules.compress import BRANCH, Session
from continuity_server.rules.error import Case, Refusal
from continuity_server.rules.messages import Messages
from continuity_server.store.deletions import Deletions
from continuity_server.store.records import HistoryWrite, SlugWrite, StoredResponse, StoredSlug, Write
from continuity_server.store.store import Store
from continuity_server.turn.agent import Agent
from continuity_server.turn.commit import Committer
from continuity_server.turn.history import HistoryReader
from continuity_server.turn.locks import Held, Locks
from continuity_server.turn.resolve import Resolver
from continuity_server.turn.summarise import Compression
from continuity_server.turn.types import Destination, Outcome, Turn, TurnOutput, TurnRequest

_FIVE = 5


@defect("slugs-share-a-session", "All slugs of a principal are in one session.")
class SlugsShareASession(Resolver):
    def _new_slug(self, request: TurnRequest, slug: str) -> Destination:
        destination = super()._new_slug(request, slug)
        shared = "sess_of_all_slugs"
        return destination if request.header else replace(destination, tip=shared, root=shared, chain=shared)


@defect("slug-new-session-each-turn", "Every turn of a slug starts another session.", "hermes-agent#16517")
class SlugNewSessionEachTurn(Resolver):
    def _slug(self, request: TurnRequest, slug: str) -> Destination:
        return self._new_slug(request, slug)


@defect(
    "slug-forks-on-eviction",
    "A slug whose last response was evicted starts another session without a word.",
    "hermes-agent#16517",
)
class SlugForksOnEviction(Resolver):
    def _slug(self, request: TurnRequest, slug: str) -> Destination:
        stored = self._store.slug(request.principal, slug)
        evicted = stored is not None and stored.session is not None and stored.response_gone
        return self._new_slug(request, slug) if evicted else super()._slug(request, slug)


@defect("slug-lost-on-eviction", "A slug whose last response was evicted is 404 for good.", "hermes-agent 0.13.0")
class SlugLostOnEviction(Resolver):
    def _slug_session(self, slug: StoredSlug) -> str:
        if slug.response_gone:
            raise Refusal(Case.PREVIOUS_RESPONSE_NOT_FOUND, "There is no response with this id.")
        return super()._slug_session(slug)


@defect("slug-lost-on-restart", "Slugs are known to the process that first heard of them only.", "hermes-agent#16517")
class SlugLostOnRestart(Resolver):
    def __init__(self, store: Store, rules: Rules) -> None:
        super().__init__(store, rules)
        self._process = secrets.token_hex(8)

    def _slug(self, request: TurnRequest, slug: str) -> Destination:
        return super()._slug(request, f"{self._process} {slug}")


@defect("bound-slug-lost-on-restart", "A restart forgets the slugs that were given to a session of the header.")
class BoundSlugLostOnRestart(Resolver):
    def __init__(self, store: Store, rules: Rules) -> None:
        super().__init__(store, rules)
        self._bound: set[str] = set()

    def _new_slug(self, request: TurnRequest, slug: str) -> Destination:
        self._bound.add(slug)
        return super()._new_slug(request, slug)

    def _slug(self, request: TurnRequest, slug: str) -> Destination:
        stored = self._store.slug(request.principal, slug)
        named = stored is not None and not str(stored.session).startswith("sess_")
        return self._new_slug(request, slug) if named and slug not in self._bound else super()._slug(request, slug)


@defect(
    "slug-mapping-in-response-cache",
    "Slugs live in the cache of responses: one that falls out of it takes its slug along.",
    "hermes-agent#16517",
)
class SlugMappingInResponseCache(Deletions):
    def evict(self, owner: str, most: int) -> None:
        gone = [(owner, response) for response in self._least_recently_used(owner, most)]
        self._connection.executemany("DELETE FROM conversations WHERE owner=? AND response_id=?", gone)
        super().evict(owner, most)


@defect("eviction-removes-session", "With its last response, a session without a slug is evicted too.")
class EvictionRemovesSession(Deletions):
    def evict(self, owner: str, most: int) -> None:
        for response in self._least_recently_used(owner, most):
            query = "SELECT session FROM responses WHERE owner=? AND response_id=?"
            (session,) = self._connection.execute(query, (owner, response)).fetchone()
            self._delete_response(owner, response)
            if not self._is_named(owner, session):
                self.session(owner, session)

    def _is_named(self, owner: str, session: str) -> bool:
        """Whether a slug or another response leads to this session."""
        query = (
            "SELECT 1 FROM responses WHERE owner=?1 AND session=?2 "
            "UNION SELECT 1 FROM conversations WHERE owner=?1 AND session=?2"
        )
        return self._connection.execute(query, (owner, session)).fetchone() is not None


@defect("slug-amnesia-after-eviction", "A slug whose last response was evicted keeps its id and forgets its turns.")
class SlugAmnesiaAfterEviction(HistoryReader):
    def _stored(self, destination: Destination) -> Messages:
        return [] if destination.slug and destination.response_gone else super()._stored(destination)


@defect(
    "previous-response-unknown-starts-fresh",
    "A previous_response_id that cannot be found is accepted.",
    "openclaw 2026.9.6",
)
class PreviousResponseUnknownStartsFresh(Resolver):
    def _previous(self, request: TurnRequest, previous: str) -> Destination:
        try:
            return super()._previous(request, previous)
        except Refusal as refusal:
            if refusal.case is not Case.PREVIOUS_RESPONSE_NOT_FOUND:
                raise
            return self._fresh(request.principal)


@defect("slug-and-previous-both-accepted", "A slug beside a previous_response_id is accepted.")
class SlugAndPreviousBothAccepted(Rules):
    def check_one_of(self, slug: str | None, previous: str | None) -> None:
        pass


class _StoringAgent(Agent):
    """An agent that stores a part of a turn with `store: false`; by itself nothing but an empty session."""

    async def _answer_unstored(self, turn: Turn) -> Outcome:
        await self._committer.check()
        output = await self._ask_model(turn)
        write = self._committer.write(turn, output, await self._compression(turn, output))
        after = self._info_after(turn, write.history.session)
        body = turn.request.shape(output, after)
        await self._committer.commit(self._part(turn, write, body))
        return Outcome(body, turn.session_info if turn.request.stream else after)

    async def _compression(self, turn: Turn, output: TurnOutput) -> Compression | None:  # noqa: ARG002 - none
        return None

    def _part(self, turn: Turn, write: Write, body: dict[str, Any]) -> Write:  # noqa: ARG002 - nothing
        return replace(write, history=replace(write.history, messages=(), replace=False), compressed_on_request=None)


@defect("store-false-stores-mapping", "A turn with `store: false` moves its slug.", "hermes-agent@7a3ccea42e")
class StoreFalseStoresMapping(_StoringAgent):
    def _part(self, turn: Turn, write: Write, body: dict[str, Any]) -> Write:
        slug = SlugWrite(turn.destination.slug, "") if turn.destination.slug is not None else None
        return replace(super()._part(turn, write, body), slug=slug)


@defect("store-false-stores-messages", "A turn with `store: false` is in the history of its session.")
class StoreFalseStoresMessages(_StoringAgent):
    def _part(self, turn: Turn, write: Write, body: dict[str, Any]) -> Write:  # noqa: ARG002 - the messages
        return replace(write, compressed_on_request=None)


@defect("store-false-stores-response", "A response with `store: false` can be read and continued.")
class StoreFalseStoresResponse(_StoringAgent):
    def _part(self, turn: Turn, write: Write, body: dict[str, Any]) -> Write:
        return replace(super()._part(turn, write, body), response=(turn.request.answer_id, body))


@defect("store-false-ignored", "`store: false` is ignored: a later turn sees what was said.", "openclaw 2026.9.6")
class StoreFalseIgnored(Agent):
    async def _answer_unstored(self, turn: Turn) -> Outcome:
        return await self._answer(turn)


@defect("store-false-rotates", "A turn with `store: false` rotates a session that is due for it, into an empty one.")
class StoreFalseRotates(_StoringAgent):
    async def _compression(self, turn: Turn, output: TurnOutput) -> Compression | None:
        return await self._summariser.compress(turn, output)


@defect("slug-stuck-on-first-response", "A slug goes on from its first response for good: later turns are not seen.")
class SlugStuckOnFirstResponse(HistoryReader):
    def _stored(self, destination: Destination) -> Messages:
        stored = super()._stored(destination)
        users = [index for index, message in enumerate(stored) if message["role"] == "user"]
        return stored[: users[1]] if destination.slug and len(users) > 1 else stored


@defect("slug-forgets-after-five-turns", "After five turns of a slug, its next turn no longer sees the first one.")
class SlugForgetsAfterFiveTurns(HistoryReader):
    def _stored(self, destination: Destination) -> Messages:
        stored = super()._stored(destination)
        users = [index for index, message in enumerate(stored) if message["role"] == "user"]
        return stored[users[1] :] if destination.slug and len(users) >= _FIVE else stored


@defect(
    "slug-history-doubles",
    "A slug's turn stores all that came before it once more: the history doubles with every turn, under the right id.",
    "hermes-agent 0.19.0",
)
class SlugHistoryDoubles(HistoryReader):
    def _stored(self, destination: Destination) -> Messages:
        stored = super()._stored(destination)
        if not destination.slug:
            return stored
        doubled: Messages = []
        for message in stored:
            doubled = [*doubled, *doubled, message] if message["role"] == "user" else [*doubled, message]
        return doubled


class _SlugOfParent(Committer):
    def _slug(self, destination: Destination, session: str) -> SlugWrite | None:  # noqa: ARG002 - that is the defect
        return super()._slug(destination, destination.tip)


@defect(
    "slug-stays-on-parent",
    "A slug whose session rotated goes on in the parent.",
    "hermes-agent#16938",
    also=(_SlugOfParent,),
)
class SlugStaysOnParent(Resolver):
    def _slug_tip(self, owner: str, session: str) -> Session | None:
        return self._store.session(owner, session)


@defect("slug-race-many-sessions", "First requests of one slug at once start a session each.", "hermes-agent 0.16.0")
class SlugRaceManySessions(Locks):
    def slug(self, principal: str, slug: str) -> Held:  # noqa: ARG002 - that is the defect
        return nullcontext(enter_result=False)


@defect(
    "slug-race-loses-turns",
    "Of several first requests of one slug at once, each writes over what the ones before it left.",
    "adk-python#1733",
    also=(LateAgent,),
)
class SlugRaceLosesTurns(Committer):
    def _appended(self, destination: Destination, messages: Messages) -> HistoryWrite:
        late = isinstance(destination, LateDestination) and destination.slug is not None
        return replace(super()._appended(destination, messages), replace=late)


@defect("branch-sees-newer-turns", "A turn that goes on from an older response sees the newer turns too.")
class BranchSeesNewerTurns(HistoryReader):
    def _stored(self, destination: Destination) -> Messages:
        if destination.branch_from is None:
            return super()._stored(destination)
        session, response = destination.branch_from
        return self._store.messages(destination.owner, session.id, response.epoch)


@defect("branch-cuts-newer-turns", "A turn that goes on from an older response replaces what was said after it.")
class BranchCutsNewerTurns(Resolver):
    def _branch(self, owner: str, session: Session, response: StoredResponse) -> Destination:
        return replace(super()._branch(owner, session, response), tip=session.id, root=session.id)


@defect(
    "previous-response-starts-fresh",
    "A previous_response_id starts a new session, although it is known.",
    "mlx-vlm#1046, litellm#11204",
)
class PreviousResponseStartsFresh(Resolver):
    def _previous(self, request: TurnRequest, previous: str) -> Destination:
        self._response_and_session(request.principal, previous)
        return self._fresh(request.principal)


@defect("slug-folds-case", "Slugs that differ in case are one.")
class SlugFoldsCase(Resolver):
    def _slug(self, request: TurnRequest, slug: str) -> Destination:
        return super()._slug(request, slug.lower())


@defect("slug-compared-as-number", "Slugs that read like the same number are one, as in a column without a type.")
class SlugComparedAsNumber(Resolver):
    def _slug(self, request: TurnRequest, slug: str) -> Destination:
        with suppress(ValueError):
            return super()._slug(request, str(float(slug)))
        return super()._slug(request, slug)


@defect("slug-named-like-a-member", "A slug that has the name of a member of every object is looked up there: a 500.")
class SlugNamedLikeAMember(Resolver):
    def _slug(self, request: TurnRequest, slug: str) -> Destination:
        member: Any = getattr(object, slug, None)
        return member.session if member is not None else super()._slug(request, slug)


@defect("slug-trimmed", "Blanks at both ends of a slug do not count.")
class SlugTrimmed(Resolver):
    def _slug(self, request: TurnRequest, slug: str) -> Destination:
        return super()._slug(request, slug.strip() or slug)


@defect("slug-cut", "Only the first 64 characters of a slug count.")
class SlugCut(Resolver):
    def _slug(self, request: TurnRequest, slug: str) -> Destination:
        return super()._slug(request, slug[:64])


@defect("long-slug-accepted", "A slug of more than 256 characters is accepted.")
class LongSlugAccepted(Rules):
    def checked_slug(self, value: object) -> str:
        slug = value.get("id") if isinstance(value, dict) else value
        return slug if isinstance(slug, str) and slug else super().checked_slug(value)


@defect("slug-object-is-500", "A conversation given as an object is a 500.", "hermes-agent 0.19.0")
class SlugObjectIs500(Rules):
    def checked_slug(self, value: object) -> str:
        if isinstance(value, dict):
            raise Refusal(Case.INTERNAL, "The server has a defect.")
        return super().checked_slug(value)


@defect("deleted-response-still-there", "DELETE of a response answers that it is gone, and leaves it there.")
class DeletedResponseStillThere(Deletions):
    def response(self, owner: str, response: str) -> None:
        pass


@defect("deleted-response-continues", "A deleted response can no longer be read, and still be continued from.")
class DeletedResponseContinues(Deletions):
    def response(self, owner: str, response: str) -> None:
        query = "UPDATE responses SET data='' WHERE owner=? AND response_id=?"
        self._connection.execute(query, (owner, response))


@defect("delete-removes-slug", "DELETE of a response removes the slug that it belongs to.", "hermes-agent 0.16.0")
class DeleteRemovesSlug(Deletions):
    def _release_slug(self, owner: str, response: str) -> None:
        query = "DELETE FROM conversations WHERE owner=? AND response_id=?"
        self._connection.execute(query, (owner, response))


class _SlugNotReleased(Deletions):
    def _release_slug(self, owner: str, response: str) -> None:
        pass


@defect(
    "slug-lost-on-response-delete",
    "A slug names the response that was deleted, and is 404 for good.",
    "hermes-agent 0.13.0",
    also=(_SlugNotReleased,),
)
class SlugLostOnResponseDelete(SlugLostOnEviction):
    """The slug goes on naming a response that is gone."""


@defect("slugs-not-bound-to-principal", "The same slug of two principals is one conversation.")
class SlugsNotBoundToPrincipal(Resolver):
    def __init__(self, store: Store, rules: Rules) -> None:
        super().__init__(store, rules)
        self._first: dict[str, str] = {}

    def _slug(self, request: TurnRequest, slug: str) -> Destination:
        first = self._first.setdefault(slug, request.principal)
        return super()._slug(replace(request, principal=first), slug)


@defect("responses-never-evicted", "Responses are kept for good, however many there are.", "vllm#48275")
class ResponsesNeverEvicted(Deletions):
    def evict(self, owner: str, most: int) -> None:
        pass


@defect("idle-slug-lost-on-restart", "A start forgets the slugs that nobody used since the start before it.")
class IdleSlugLostOnRestart(IdleForgettingStore):
    forget = "DELETE FROM conversations WHERE (owner, name) NOT IN (SELECT owner, name FROM used)"

    def used(self, write: Write) -> str | None:
        return write.slug.name if write.slug is not None else None


@defect("evicts-by-id", "Of too many responses those with the smallest ids go, however new they are.")
class EvictsById(Deletions):
    def _least_recently_used(self, owner: str, most: int) -> list[str]:
        query = "SELECT response_id FROM responses WHERE owner=? ORDER BY response_id DESC LIMIT -1 OFFSET ?"
        return [row[0] for row in self._connection.execute(query, (owner, most)).fetchall()]


@defect(
    "store-false-binds-slug-to-header",
    "A turn with `store: false` binds a new slug to the session that its header names.",
)
class StoreFalseBindsSlugToHeader(Agent):
    async def _answer_unstored(self, turn: Turn) -> Outcome:
        outcome, at = await super()._answer_unstored(turn), turn.destination
        if turn.request.header is not None and at.slug is not None:
            nothing = HistoryWrite(at.tip, at.root, ())
            await self._committer.commit(Write(at.owner, nothing, slug=SlugWrite(at.slug, at.tip)))
        return outcome


_WITHOUT_RESPONSE: set[str] = set()
"""Sessions that lost a response."""


class _NotingDeletions(Deletions):
    def response(self, owner: str, response: str) -> None:
        query = "SELECT session FROM responses WHERE owner=? AND response_id=?"
        _WITHOUT_RESPONSE.update(row[0] for row in self._connection.execute(query, (owner, response)))
        super().response(owner, response)


@defect(
    "branch-ends-with-its-response",
    "A branch has no copy of the turns before it: they are gone once the response that it began at is deleted.",
    also=(_NotingDeletions,),
)
class BranchEndsWithItsResponse(HistoryReader):
    def _stored(self, destination: Destination) -> Messages:
        stored, session = super()._stored(destination), destination.session
        if session is None or session.kind != BRANCH or session.parent not in _WITHOUT_RESPONSE:
            return stored
        origin = self._store.messages(destination.owner, session.parent, 1)
        return [message for message in stored if message not in origin]

"""Defects of ISOLATE: strangers who get in, ids that are bent, guessed or shared, and answers that tell too much."""

import itertools
import re
import secrets
import time
import traceback
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from aiohttp import web

from continuity_server.defects.durable import RenamedHistories
from continuity_server.defects.registry import defect
from continuity_server.defects.support.leaving import LeavingAgent
from continuity_server.defects.support.owners import OpenStore, OtherOwner
from continuity_server.http.chat import ChatHandler
from continuity_server.http.middleware import Handler, Middleware
from continuity_server.http.request import PRINCIPAL, STREAMING, Access, fields
from continuity_server.http.response_events import ResponseEvents
from continuity_server.http.responses import ResponsesHandler
from continuity_server.http.sessions import SessionsHandler
from continuity_server.rules import Rules
from continuity_server.rules.compress import COMPRESSION, Session
from continuity_server.rules.echo import MAX_ID
from continuity_server.rules.error import Case, Refusal
from continuity_server.rules.messages import Message, Messages
from continuity_server.settings import HEADER, Options
from continuity_server.store.interface import AnyStore
from continuity_server.store.records import Replay, Write
from continuity_server.store.store import Store
from continuity_server.turn.commit import Committer
from continuity_server.turn.history import HistoryReader
from continuity_server.turn.locks import Held, Locks
from continuity_server.turn.resolve import Resolver
from continuity_server.turn.types import Destination, Outcome, Sink, TurnRequest

_ULID: Final = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")

# Keys


@defect("key-not-checked-on-stored-responses", "GET of a response needs no key: it shows what the first principal has.")
class KeyNotCheckedOnStoredResponses(Rules):
    def wants_key(self, method: str, path: str) -> bool:
        return (method, path.startswith("/v1/responses/")) != ("GET", True) and super().wants_key(method, path)


@defect("key-not-checked-on-deletion", "DELETE of a session needs no key.")
class KeyNotCheckedOnDeletion(Rules):
    def wants_key(self, method: str, path: str) -> bool:
        return (method, path.startswith("/v1/sessions/")) != ("DELETE", True) and super().wants_key(method, path)


@defect("wrong-key-is-a-guest", "A wrong key is nobody's, and nobody may talk too.")
class WrongKeyIsAGuest(Rules):
    def wants_key(self, method: str, path: str) -> bool:
        return path != "/v1/chat/completions" and super().wants_key(method, path)


@defect("key-prefix-accepted", "The beginning of a key is as good as the whole of it.")
class KeyPrefixAccepted(Rules):
    def is_key(self, known: str, sent: str) -> bool:
        return bool(sent) and known.startswith(sent)


@defect("wrong-key-is-403", "A wrong key is refused as if it had been known and were not enough.")
class WrongKeyIs403(Access):
    def principal(self, request: web.Request) -> str:
        try:
            return super().principal(request)
        except Refusal:
            raise Refusal(Case.REQUIRES_KEY, "This key may not do that.") from None


@defect("refused-key-learns-session", "The refusal of a wrong key carries the continuity header.")
class RefusedKeyLearnsSession(Access):
    def principal(self, request: web.Request) -> str:
        try:
            return super().principal(request)
        except Refusal as refusal:
            named = (
                value
                for name, value in fields(request, {HEADER.lower().encode()})
                if self._rules.is_header(name, HEADER)
            )
            refusal.session = next(named, "unknown")
            raise


@defect(
    "keyless-sessions-continue",
    "Where no key is configured, whoever knows an id goes on in its session.",
    "CVE-2026-33946",
)
class KeylessSessionsContinue(Rules):
    def check_may_continue(self, *, keys: bool, single_user: bool) -> None:
        pass


# Web pages, where no key is configured


def _trusted(request: web.Request, *types: str) -> web.Request:
    """Take what a page sends with one of these content types for JSON of a program on this machine."""
    if "Origin" not in request.headers or request.headers.get("Content-Type", "").partition(";")[0] not in types:
        return request
    others = {name: value for name, value in request.headers.items() if name not in {"Origin", "Content-Type"}}
    return request.clone(headers={**others, "Content-Type": "application/json"})


class _Credulous(Middleware):
    """Middleware that trusts more requests than it should."""

    def trusted(self, request: web.Request) -> web.Request:
        raise NotImplementedError

    @web.middleware
    async def key(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        return await super().key(self.trusted(request) if self._settings.single_user else request, handler)


@defect("text-of-any-page-is-json", "Without keys, what any web page sends as text/plain counts as JSON.")
class TextOfAnyPageIsJson(_Credulous):
    def trusted(self, request: web.Request) -> web.Request:
        return _trusted(request, "text/plain")


@defect(
    "untyped-body-of-any-page-is-json",
    "Without keys, a body that any web page sends without a content type counts as JSON.",
)
class UntypedBodyOfAnyPageIsJson(_Credulous):
    def trusted(self, request: web.Request) -> web.Request:
        return _trusted(request, "")


class _CredulousAccess(Access):
    """Access that looks at other headers than those that were sent."""

    def seen(self, request: web.Request) -> dict[str, str]:
        raise NotImplementedError

    def check_origin(self, request: web.Request) -> None:
        if self._single_user:
            super().check_origin(request.clone(headers=self.seen(request)))


class _AnyOriginAccess(_CredulousAccess):
    def seen(self, request: web.Request) -> dict[str, str]:
        return {"Host": request.host}


@defect("cors-allows-any-page", "Web pages of every site may call, also without keys.", also=(_AnyOriginAccess,))
class CorsAllowsAnyPage(Middleware):
    def _allowed_origin(self, request: web.Request) -> str | None:
        return request.headers.get("Origin")


@defect(
    "origin-compared-by-its-beginning",
    "Without keys, a web page counts as one of this machine if the name of its site begins like one.",
)
class OriginComparedByItsBeginning(_Credulous):
    def trusted(self, request: web.Request) -> web.Request:
        local = request.headers.get("Origin", "").startswith(("http://127.0.0.1", "http://localhost"))
        return _trusted(request, "", "text/plain") if local else request


@defect(
    "any-host-name-answered",
    "Without keys, requests for any host name are answered.",
    "CVE-2024-28224",
)
class AnyHostNameAnswered(_CredulousAccess):
    def seen(self, request: web.Request) -> dict[str, str]:
        return {**request.headers, "Host": "localhost"}


@defect(
    "host-compared-by-its-beginning",
    "Without keys, requests for any host name that begins like one of this machine are answered.",
)
class HostComparedByItsBeginning(_CredulousAccess):
    def seen(self, request: web.Request) -> dict[str, str]:
        local = request.host.startswith(("127.0.0.1", "localhost"))
        return {**request.headers, "Host": "localhost" if local else request.host}


# Ids


@defect(
    "id-cut-at-control-character",
    "An id counts up to its first control character: what comes after it is another's affair.",
)
class IdCutAtControlCharacter(Rules):
    def checked_id(self, value: str) -> str:
        return super().checked_id("".join(itertools.takewhile(str.isprintable, value)))


@defect("control-characters-stripped", "Control characters are taken out of an id.")
class ControlCharactersStripped(Rules):
    def checked_id(self, value: str) -> str:
        return super().checked_id("".join(filter(str.isprintable, value)))


@defect("first-of-two-headers-wins", "Of two continuity headers the first one counts.")
class FirstOfTwoHeadersWins(Rules):
    def id_in(self, fields: Iterable[tuple[str, str]], header: str) -> str | None:
        return super().id_in([field for field in fields if self.is_header(field[0], header)][:1], header)


@defect("last-of-two-headers-wins", "Of two continuity headers the last one counts.")
class LastOfTwoHeadersWins(Rules):
    def id_in(self, fields: Iterable[tuple[str, str]], header: str) -> str | None:
        return super().id_in([field for field in fields if self.is_header(field[0], header)][-1:], header)


@defect("two-headers-joined", "Two continuity headers are one id with a comma in it.")
class TwoHeadersJoined(Rules):
    def id_in(self, fields: Iterable[tuple[str, str]], header: str) -> str | None:
        sent = [value for name, value in fields if self.is_header(name, header)]
        return super().id_in([(header, ",".join(sent))] if sent else [], header)


@defect("long-id-is-500", "A long id, such as one of more than 256 characters, is a 500.", "nanobot 0.3.5")
class LongIdIs500(Rules):
    def checked_id(self, value: str) -> str:
        if len(value) > MAX_ID:
            raise Refusal(Case.INTERNAL, "The server has a defect.")
        return super().checked_id(value)


@defect("long-id-cut", "Of an id of more than 256 characters the first 256 count.")
class LongIdCut(Rules):
    def checked_id(self, value: str) -> str:
        return super().checked_id(value[:MAX_ID])


@defect("long-id-accepted", "An id may be as long as it likes.", "hermes-agent 0.16.0")
class LongIdAccepted(Rules):
    def checked_id(self, value: str) -> str:
        return value if len(value) > MAX_ID else super().checked_id(value)


@defect(
    "ids-told-apart-by-128-characters", "Sessions whose ids begin with the same 128 characters share their history."
)
class IdsToldApartBy128Characters(RenamedHistories):
    def name(self, session: str) -> str:
        return session[:128]


@defect(
    "path-id-touches-file",
    "Every session has a transcript beside the database, in a file that is named by the id as it is.",
    "hermes-agent PR 54852",
)
class PathIdTouchesFile(Committer):
    async def commit(self, write: Write) -> None:
        _touch(Path(f"{write.history.session}.jsonl"))
        await super().commit(write)


def _touch(transcript: Path) -> None:
    if transcript.parent.is_dir():
        transcript.touch()


@defect("path-id-reads-file", "An id that is the path of a file shows the model what is in it.", "nanobot PR 5633")
class PathIdReadsFile(HistoryReader):
    def _stored(self, destination: Destination) -> Messages:
        stored = super()._stored(destination)
        path = Path(destination.sent or "")
        return [{"role": "user", "content": path.read_text("utf-8")}, *stored] if path.is_file() else stored


@defect("path-id-is-500", "An id with path characters is a 500.", "nanobot 0.3.5")
class PathIdIs500(Rules):
    def checked_id(self, value: str) -> str:
        if ".." in value or value.startswith("/"):
            raise Refusal(Case.INTERNAL, "The server has a defect.")
        return super().checked_id(value)


@defect("minted-ids-count-up", "Minted ids are numbered: who has one knows the others.")
class MintedIdsCountUp(Rules):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._numbers = itertools.count(time.time_ns())

    def minted(self, prefix: str) -> str:
        return f"{prefix}{next(self._numbers):032x}"


@defect("minted-ids-short", "Minted ids have 64 random bits.")
class MintedIdsShort(Rules):
    def minted(self, prefix: str) -> str:
        return f"{prefix}{secrets.token_hex(8)}"


@defect("minted-ids-half-time", "Minted ids are 32 hex digits, of which the first half is the time.")
class MintedIdsHalfTime(Rules):
    def minted(self, prefix: str) -> str:
        return f"{prefix}{time.time_ns():016x}{secrets.token_hex(8)}"


@defect("minted-ids-say-it-twice", "Minted ids have 64 random bits, written twice.")
class MintedIdsSayItTwice(Rules):
    def minted(self, prefix: str) -> str:
        return f"{prefix}{secrets.token_hex(8) * 2}"


@defect("ids-fold-case", "Sessions whose ids differ in case share their history.", "openclaw 2026.9.6")
class IdsFoldCase(RenamedHistories):
    def name(self, session: str) -> str:
        return session.lower()


@defect("ids-fold-separators", "Sessions whose ids differ in `:`, `_` or `/` share their history.", "nanobot PR 4533")
class IdsFoldSeparators(RenamedHistories):
    def name(self, session: str) -> str:
        return session.replace(":", "_").replace("/", "_")


@defect("ids-percent-decoded", "Sessions whose ids differ in percent-encoding share their history.")
class IdsPercentDecoded(RenamedHistories):
    def name(self, session: str) -> str:
        return unquote(session)


@defect("ids-collapse-blanks", "Runs of blanks inside an id are accepted, and count as one hyphen.")
class IdsCollapseBlanks(Rules):
    def checked_id(self, value: str) -> str:
        return super().checked_id("-".join(value.split()))


@defect("ulid-ids-stuck", "An id with a ULID in it takes one turn; every later one is a 500.", "openclaw#142616")
class UlidIdsStuck(Resolver):
    def _continued(self, start: Session, tip: Session, *, derived: bool) -> Destination:
        if _ULID.search(start.id):
            raise Refusal(Case.INTERNAL, "The server has a defect.")
        return super()._continued(start, tip, derived=derived)


@defect(
    "agent-ids-are-500",
    "An id that begins with `agent:NAME:` is taken for another agent's: a 500, and a database file of that name.",
    "openclaw 2026.9.6",
)
class AgentIdsAre500(Rules):
    def checked_id(self, value: str) -> str:
        if value.startswith("agent:"):
            Path(f"{value.split(':')[1]}.db").touch()
            raise Refusal(Case.INTERNAL, "The server has a defect.")
        return super().checked_id(value)


# Principals


@defect("sessions-not-bound-to-principal", "Whoever names a session is in it.", "openclaw#11793, openclaw#13152")
class SessionsNotBoundToPrincipal(OtherOwner):
    def __init__(self, store: Store, rules: Rules) -> None:
        super().__init__(store, rules)
        self._first: dict[str, str] = {}

    def owner(self, principal: str, session: str) -> str:
        return self._first.setdefault(session, principal)


@defect("foreign-session-is-403", "An id that another principal uses is refused, and so given away.")
class ForeignSessionIs403(OtherOwner):
    def __init__(self, store: Store, rules: Rules) -> None:
        super().__init__(store, rules)
        self._first: dict[str, str] = {}

    def owner(self, principal: str, session: str) -> str:
        if self._first.setdefault(session, principal) != principal:
            raise Refusal(Case.REQUIRES_KEY, "This session is not yours.")
        return principal


def _holder(store: AnyStore, principal: str, ident: str) -> str:
    """Return who has a response or a session of this id; the principal if nobody has."""
    assert isinstance(store, OpenStore), "these defects come with a store that tells"
    return store.holder(ident) or principal


def _as_holder(request: web.Request, store: AnyStore) -> web.Request:
    """Take the caller for whoever has the response or the session in the path."""
    request[PRINCIPAL] = _holder(store, request[PRINCIPAL], request.match_info["id"])
    return request


class _ForeignResponsesReadable(ResponsesHandler):
    async def get(self, request: web.Request) -> web.Response:
        return await super().get(_as_holder(request, self._store))


@defect(
    "foreign-things-readable",
    "GET shows responses and sessions of whoever has them.",
    "a2a-python#1159",
    also=(OpenStore, _ForeignResponsesReadable),
)
class ForeignThingsReadable(SessionsHandler):
    async def get(self, request: web.Request) -> web.Response:
        return await super().get(_as_holder(request, self._store))

    async def messages(self, request: web.Request) -> web.Response:
        return await super().messages(_as_holder(request, self._store))


class _ForeignResponsesDeleted(ResponsesHandler):
    async def delete(self, request: web.Request) -> web.Response:
        return await super().delete(_as_holder(request, self._store))


@defect(
    "foreign-delete-works",
    "DELETE deletes what another principal has.",
    "a2a-python#1159",
    also=(OpenStore, _ForeignResponsesDeleted),
)
class ForeignDeleteWorks(SessionsHandler):
    async def delete(self, request: web.Request) -> web.Response:
        return await super().delete(_as_holder(request, self._store))


@defect(
    "foreign-response-continues",
    "A previous_response_id of another principal goes on in their session.",
    also=(OpenStore,),
)
class ForeignResponseContinues(Resolver):
    def _previous(self, request: TurnRequest, previous: str) -> Destination:
        holder = _holder(self._store, request.principal, previous)
        return super()._previous(replace(request, principal=holder), previous)


def _almost_named(store: AnyStore, principal: str, ident: str) -> tuple[str, str]:
    """Return whose response an id names if its last characters do not count, and its real id."""
    assert isinstance(store, OpenStore), "these defects come with a store that tells"
    return (principal, ident) if store.holder(ident) else store.almost(ident) or (principal, ident)


@defect(
    "changed-response-id-continues",
    "The last characters of a previous_response_id are not checked, and with a wrong one the owner is not either.",
    "litellm 1.109.1",
    also=(OpenStore,),
)
class ChangedResponseIdContinues(Resolver):
    def _previous(self, request: TurnRequest, previous: str) -> Destination:
        owner, real = _almost_named(self._store, request.principal, previous)
        return super()._previous(replace(request, principal=owner), real)


@defect(
    "changed-response-id-readable",
    "GET of a response does not check the last characters of the id, and with a wrong one the owner is not either.",
    also=(OpenStore,),
)
class ChangedResponseIdReadable(ResponsesHandler):
    def _response(self, request: web.Request) -> dict[str, Any]:
        owner, real = _almost_named(self._store, request[PRINCIPAL], request.match_info["id"])
        found = self._store.response(owner, real)
        return found.body if found and found.body else super()._response(request)


def _refuse_foreign(store: AnyStore, principal: str, ident: str) -> None:
    if _holder(store, principal, ident) != principal:
        raise Refusal(Case.REQUIRES_KEY, "This is not yours.")


class _ForeignResponseRefused(ResponsesHandler):
    def _response(self, request: web.Request) -> dict[str, Any]:
        _refuse_foreign(self._store, request[PRINCIPAL], request.match_info["id"])
        return super()._response(request)


class _ForeignSessionRefused(SessionsHandler):
    async def _session(self, request: web.Request) -> Session:
        _refuse_foreign(self._store, request[PRINCIPAL], request.match_info["id"])
        return await super()._session(request)


@defect(
    "foreign-response-is-403",
    "What another principal has is refused, and so told from what nobody has.",
    also=(OpenStore, _ForeignResponseRefused, _ForeignSessionRefused),
)
class ForeignResponseIs403(Resolver):
    def _previous(self, request: TurnRequest, previous: str) -> Destination:
        _refuse_foreign(self._store, request.principal, previous)
        return super()._previous(request, previous)


@defect("foreign-session-listed", "The list of sessions has everybody's in it.")
class ForeignSessionListed(Store):
    def page_of_sessions(self, owner: str, after: str | None, limit: int) -> list[Session]:  # noqa: ARG002 - that is the defect
        query = (
            "SELECT owner, id FROM sessions WHERE rowid<coalesce((SELECT max(rowid) FROM sessions WHERE id=?1), 1<<62) "
            "ORDER BY rowid DESC LIMIT ?2"
        )
        sessions = [self.session(*row) for row in self._read(query, after, limit)]
        return [session for session in sessions if session is not None]


@defect("restart-forgets-owners", "After a restart a session belongs to whoever names it first.")
class RestartForgetsOwners(SessionsNotBoundToPrincipal):
    def owner(self, principal: str, session: str) -> str:
        return "everybody" if super().owner(principal, session) == principal else principal


@defect(
    "rotated-session-open-to-all",
    "The child of a rotation can be continued by whoever learns its id.",
    also=(OpenStore,),
)
class RotatedSessionOpenToAll(OtherOwner):
    def owner(self, principal: str, session: str) -> str:
        holder = _holder(self._store, principal, session)
        found = self._store.session(holder, session)
        return holder if found and found.kind == COMPRESSION else principal


@defect("evicted-slug-open-to-all", "A slug whose last response was evicted is found by its name alone.")
class EvictedSlugOpenToAll(Resolver):
    def __init__(self, store: Store, rules: Rules) -> None:
        super().__init__(store, rules)
        self._open: dict[str, str] = {}

    def _slug(self, request: TurnRequest, slug: str) -> Destination:
        principal = self._open.get(slug, request.principal)
        destination = super()._slug(replace(request, principal=principal), slug)
        if destination.response_gone:
            self._open[slug] = principal
        return destination


# Replays


@defect(
    "idempotency-across-sessions",
    "An Idempotency-Key replays the answer of another session.",
    "hermes-agent 0.19.0",
)
class IdempotencyAcrossSessions(Store):
    def replay(self, owner: str, scope: str, key: str) -> Replay | None:
        return super().replay(owner, "any" if scope else scope, key)

    async def commit(self, write: Write) -> None:
        replay = write.replay and replace(write.replay, scope="any" if write.replay.scope else "")
        await super().commit(replace(write, replay=replay))


@defect(
    "idempotency-across-principals",
    "An Idempotency-Key replays the answer of another principal.",
    "hermes-agent PR 39643",
)
class IdempotencyAcrossPrincipals(Store):
    def replay(self, owner: str, scope: str, key: str) -> Replay | None:  # noqa: ARG002 - that is the defect
        return super().replay("everybody", scope, key)

    async def commit(self, write: Write) -> None:
        replay = write.replay and replace(write.replay, owner="everybody")
        await super().commit(replace(write, replay=replay))


@defect("idempotency-ignores-body", "An Idempotency-Key replays its answer to another question.")
class IdempotencyIgnoresBody(Rules):
    def check_replay(self, stored: str, sent: str) -> None:
        pass


def _words(messages: Sequence[Message]) -> str:
    """What the user says in these messages, without the system prompts."""
    return str([message.get("content") for message in messages if message["role"] not in {"system", "developer"}])


def _texts(messages: Sequence[Message]) -> str:
    """The texts of these messages, without their images."""
    parts = ([part.get("text") for part in _parts(message)] for message in messages)
    return str([*parts])


def _parts(message: Message) -> list[dict[str, Any]]:
    content = message.get("content")
    return content if isinstance(content, list) else [{"text": content}]


class _WordsOfResponses(ResponsesHandler):
    def _turn_request(self, request: web.Request, body: dict[str, Any]) -> TurnRequest:
        turn = super()._turn_request(request, body)
        return replace(turn, fingerprint=_words(turn.messages))


@defect(
    "idempotency-compares-words",
    "An Idempotency-Key replays its answer to the same question under another system prompt.",
    also=(_WordsOfResponses,),
)
class IdempotencyComparesWords(ChatHandler):
    def _turn_request(self, request: web.Request, body: dict[str, Any]) -> TurnRequest:
        turn = super()._turn_request(request, body)
        return replace(turn, fingerprint=_words(turn.messages))


@defect("idempotency-compares-texts", "An Idempotency-Key replays its answer to the same question about another image.")
class IdempotencyComparesTexts(ChatHandler):
    def _turn_request(self, request: web.Request, body: dict[str, Any]) -> TurnRequest:
        turn = super()._turn_request(request, body)
        return replace(turn, fingerprint=_texts(turn.messages))


@defect("replayed-stream-has-a-new-id", "A streamed response that is replayed has a new id, which names nothing.")
class ReplayedStreamHasANewId(ResponseEvents):
    async def _finish(self, outcome: Outcome) -> None:
        body = {**outcome.body, "id": self._frame["id"]}
        await super()._finish(replace(outcome, body=body))


@defect("replays-lost-on-restart", "A restart forgets which Idempotency-Keys were used.")
class ReplaysLostOnRestart(Store):
    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._connection.execute("DELETE FROM replays")


@defect("idempotency-key-forgotten", "A request with an Idempotency-Key that was used is run again.")
class IdempotencyKeyForgotten(Store):
    def replay(self, owner: str, scope: str, key: str) -> Replay | None:  # noqa: ARG002 - that is the defect
        return None


@defect("idempotent-twins-both-run", "The same key twice at once runs two turns.")
class IdempotentTwinsBothRun(Locks):
    def idempotency_key(self, owner: str, key: str) -> Held:  # noqa: ARG002 - that is the defect
        return nullcontext(enter_result=False)


@defect("replay-stores-twice", "A replay stores the question once more.")
class ReplayStoresTwice(LeavingAgent):
    async def turn(self, request: TurnRequest, sink: Sink) -> Outcome:
        outcome = await super().turn(request, sink)
        if outcome.replayed:
            await self._leave(self._resolver.destination(request), request.messages[-1:])
        return outcome


# What answers tell


@defect("answers-cacheable", "Answers say nothing about caching.")
class AnswersCacheable(Middleware):
    async def headers(self, request: web.Request, response: web.StreamResponse) -> None:
        await super().headers(request, response)
        del response.headers["Cache-Control"]


@defect("streams-no-cache-only", "Streams say `no-cache`, which lets a cache keep them.")
class StreamsNoCacheOnly(Middleware):
    async def headers(self, request: web.Request, response: web.StreamResponse) -> None:
        await super().headers(request, response)
        if STREAMING in request:
            response.headers["Cache-Control"] = "no-cache"


@defect("stored-content-cacheable", "What is read again may be kept by caches.")
class StoredContentCacheable(Middleware):
    async def headers(self, request: web.Request, response: web.StreamResponse) -> None:
        await super().headers(request, response)
        if request.method == "GET":
            response.headers["Cache-Control"] = "private, max-age=60"


class _Telling(Rules):
    """Errors whose message says more than it may."""

    def more(self, refusal: Refusal) -> str:
        raise NotImplementedError

    def error_body(self, refusal: Refusal) -> dict[str, Any]:
        error = super().error_body(refusal)["error"]
        return {"error": {**error, "message": f"{error['message']} {self.more(refusal)}"}}


@defect("error-shows-trace", "Errors have the trace of the code in them.")
class ErrorShowsTrace(_Telling):
    def more(self, refusal: Refusal) -> str:
        return "".join(traceback.format_exception(refusal))


@defect("error-shows-path", "An error names the file of the database.")
class ErrorShowsPath(_Telling):
    def more(self, refusal: Refusal) -> str:
        return f"(store: {Path.cwd() / 'continuity.db'})" if refusal.case.value.type == "not_found_error" else ""


@defect("error-shows-sql", "An error has the statement in it that found nothing.")
class ErrorShowsSql(_Telling):
    def more(self, refusal: Refusal) -> str:
        return "SELECT data FROM responses WHERE response_id=?" if refusal.case.value.type == "not_found_error" else ""


@defect("error-repeats-key", "The refusal of a wrong key repeats it, and so puts it into logs.")
class ErrorRepeatsKey(Access):
    def principal(self, request: web.Request) -> str:
        try:
            return super().principal(request)
        except Refusal:
            sent = next((value for name, value in fields(request, {b"authorization"})), "none")
            raise Refusal(Case.INVALID_KEY, f"The API key is wrong: {sent}") from None


@defect("failed-stream-shows-trace", "A stream that fails in the middle ends with a trace.")
class FailedStreamShowsTrace(_Telling):
    def more(self, refusal: Refusal) -> str:
        return "".join(traceback.format_exception(refusal)) if refusal.case is Case.UPSTREAM else ""


@defect("error-as-plain-text", "Errors are plain text.")
class ErrorAsPlainText(Rules):
    def error_text(self, body: dict[str, Any]) -> tuple[str, str]:
        return f"Error: {body['error']['message']}", "text/plain"


@defect("error-without-envelope", "Errors lack fields of the error envelope of OpenAI.")
class ErrorWithoutEnvelope(Rules):
    def error_text(self, body: dict[str, Any]) -> tuple[str, str]:
        return super().error_text({"detail": body["error"]["message"]})


@defect(
    "foreign-page-mark",
    "A page can begin after another's session.",
)
class ForeignPageMark(Store):
    def page_of_sessions(self, owner: str, after: str | None, limit: int) -> list[Session]:
        others = self._read("SELECT rowid FROM sessions WHERE id=? AND owner<>?", after, owner)
        if not others:
            return super().page_of_sessions(owner, after, limit)
        older = "SELECT id FROM sessions WHERE owner=? AND rowid<? ORDER BY rowid DESC LIMIT ?"
        found = (self.session(owner, row[0]) for row in self._read(older, owner, others[0][0], limit))
        return [session for session in found if session is not None]

"""Defects of ISOLATE: strangers who get in, ids that are bent, guessed or shared, and answers that tell too much."""

import itertools
import re
import secrets
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from continuity_server.defects.registry import defect
from continuity_server.rules import Rules
from continuity_server.rules.compress import Session
from continuity_server.rules.echo import MAX_ID, Surface
from continuity_server.rules.error import Case, Refusal
from continuity_server.rules.history import W
from continuity_server.rules.isolate import Act, T
from continuity_server.rules.messages import Message, Messages
from continuity_server.settings import HEADER, Options

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
class WrongKeyIs403(Rules):
    def unknown_key(self, fields: Iterable[tuple[str, str]]) -> Refusal:  # noqa: ARG002 - that is the defect
        return Refusal(Case.REQUIRES_KEY, "This key may not do that.")


@defect("refused-key-learns-session", "The refusal of a wrong key carries the continuity header.")
class RefusedKeyLearnsSession(Rules):
    def unknown_key(self, fields: Iterable[tuple[str, str]]) -> Refusal:
        refusal = super().unknown_key(())
        refusal.session = next((value for name, value in fields if self.is_continuity_header(name)), "unknown")
        return refusal


@defect(
    "keyless-sessions-continue",
    "Where no key is configured, whoever knows an id goes on in its session.",
    "CVE-2026-33946",
)
class KeylessSessionsContinue(Rules):
    def may_continue(self, *, keys: bool, single_user: bool) -> bool:  # noqa: ARG002 - that is the defect
        return True


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
    def sent_id(self, fields: Iterable[tuple[str, str]]) -> str | None:
        return super().sent_id([field for field in fields if self.is_continuity_header(field[0])][:1])


@defect("last-of-two-headers-wins", "Of two continuity headers the last one counts.")
class LastOfTwoHeadersWins(Rules):
    def sent_id(self, fields: Iterable[tuple[str, str]]) -> str | None:
        return super().sent_id([field for field in fields if self.is_continuity_header(field[0])][-1:])


@defect("two-headers-joined", "Two continuity headers are one id with a comma in it.")
class TwoHeadersJoined(Rules):
    def sent_id(self, fields: Iterable[tuple[str, str]]) -> str | None:
        sent = [value for name, value in fields if self.is_continuity_header(name)]
        return super().sent_id([(HEADER, ", ".join(sent))] if sent else [])


@defect("long-id-is-500", "An id of more than 256 characters is a 500.", "nanobot 0.3.5")
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


@defect("id-measured-in-bytes", "An id of 256 characters is refused where they take more bytes than that.")
class IdMeasuredInBytes(Rules):
    def checked_id(self, value: str) -> str:
        super().checked_id("x" * len(value.encode("utf-8", "surrogateescape")))
        return super().checked_id(value)


@defect(
    "ids-told-apart-by-128-characters", "Sessions whose ids begin with the same 128 characters share their history."
)
class IdsToldApartBy128Characters(Rules):
    def line(self, session: str, surface: Surface) -> str:
        return super().line(session[:128], surface)


@defect(
    "path-id-touches-file",
    "Every session has a transcript beside the database, in a file that is named by the id as it is.",
    "hermes-agent PR 54852",
)
class PathIdTouchesFile(Rules):
    def due(self, write: W) -> list[W]:
        transcript = Path(f"{write.session[1]}.jsonl")
        if transcript.parent.is_dir():
            transcript.touch()
        return super().due(write)


@defect("path-id-reads-file", "An id that is the path of a file shows the model what is in it.", "nanobot PR 5633")
class PathIdReadsFile(Rules):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._found: Messages = []

    def started(self, session: str) -> str:
        path = Path(session)
        self._found = [{"role": "user", "content": path.read_text("utf-8")}] if path.is_file() else []
        return super().started(session)

    def recalled(self, stored: Sequence[Message]) -> Messages:
        return [*self._found, *super().recalled(stored)]


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
class IdsFoldCase(Rules):
    def line(self, session: str, surface: Surface) -> str:
        return super().line(session.lower(), surface)


@defect("ids-fold-separators", "Sessions whose ids differ in `:`, `_` or `/` share their history.", "nanobot PR 4533")
class IdsFoldSeparators(Rules):
    def line(self, session: str, surface: Surface) -> str:
        return super().line(session.replace(":", "_").replace("/", "_"), surface)


@defect("ids-collapse-blanks", "Runs of blanks inside an id count as one.")
class IdsCollapseBlanks(Rules):
    def line(self, session: str, surface: Surface) -> str:
        return super().line(" ".join(session.split()), surface)


@defect("ulid-ids-stuck", "An id with a ULID in it takes one turn; every later one is a 500.", "openclaw#142616")
class UlidIdsStuck(Rules):
    def read_from(self, start: Session, tip: Session) -> Session:
        if _ULID.search(start.id):
            raise Refusal(Case.INTERNAL, "The server has a defect.")
        return super().read_from(start, tip)


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
class SessionsNotBoundToPrincipal(Rules):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._first: dict[str, str] = {}

    def owner(self, principal: str, session: str) -> str:
        return self._first.setdefault(session, principal)


@defect("foreign-session-is-403", "An id that another principal uses is refused, and so given away.")
class ForeignSessionIs403(Rules):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._first: dict[str, str] = {}

    def owner(self, principal: str, session: str) -> str:
        if self._first.setdefault(session, principal) != principal:
            raise Refusal(Case.REQUIRES_KEY, "This session is not yours.")
        return principal


class _Foreign(Rules):
    """Another's things are found, for some acts."""

    acts: frozenset[Act]

    def whose(self, principal: str, ident: str, act: Act, holder: Callable[[], str | None]) -> str:  # noqa: ARG002 - the holder is all that counts
        return (holder() if act in self.acts else None) or principal


@defect("foreign-things-readable", "GET shows responses and sessions of whoever has them.", "a2a-python#1159")
class ForeignThingsReadable(_Foreign):
    acts = frozenset({Act.READ})


@defect("foreign-delete-works", "DELETE deletes what another principal has.", "a2a-python#1159")
class ForeignDeleteWorks(_Foreign):
    acts = frozenset({Act.DELETE})


@defect("foreign-response-continues", "A previous_response_id of another principal goes on in their session.")
class ForeignResponseContinues(_Foreign):
    acts = frozenset({Act.CONTINUE})


@defect("foreign-response-is-403", "What another principal has is refused, and so told from what nobody has.")
class ForeignResponseIs403(Rules):
    def whose(self, principal: str, ident: str, act: Act, holder: Callable[[], str | None]) -> str:
        if holder() not in {None, principal}:
            raise Refusal(Case.REQUIRES_KEY, "This is not yours.")
        return super().whose(principal, ident, act, holder)


@defect("foreign-session-listed", "The list of sessions has everybody's in it.")
class ForeignSessionListed(Rules):
    def listed(self, principal: str, everybody: Callable[[], Sequence[str]]) -> Sequence[str]:  # noqa: ARG002 - that is the defect
        return everybody()


@defect("restart-forgets-owners", "After a restart a session belongs to whoever names it first.")
class RestartForgetsOwners(SessionsNotBoundToPrincipal):
    def owner(self, principal: str, session: str) -> str:
        return "everybody" if super().owner(principal, session) == principal else principal


@defect("rotated-session-open-to-all", "The child of a rotation can be continued by whoever learns its id.")
class RotatedSessionOpenToAll(Rules):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._rotating = ""
        self._open: dict[str, str] = {}

    def child_owner(self, owner: str) -> str:
        self._rotating = owner
        return super().child_owner(owner)

    def told_id(self, sent: str | None, root: str, tip: str) -> str:
        if tip != root:
            self._open.setdefault(tip, self._rotating)
        return super().told_id(sent, root, tip)

    def owner(self, principal: str, session: str) -> str:
        return self._open.get(session, principal)


@defect("evicted-slug-open-to-all", "A slug whose last response was evicted is found by its name alone.")
class EvictedSlugOpenToAll(Rules):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._asked = ("", "")
        self._open: dict[str, str] = {}

    def slug_owner(self, principal: str, slug: str) -> str:
        self._asked = (slug, self._open.get(slug, principal))
        return self._asked[1]

    def without_response(self, session: str) -> str | None:
        self._open.update([self._asked])
        return super().without_response(session)


# Replays


@defect(
    "idempotency-across-sessions",
    "An Idempotency-Key replays the answer of another session.",
    "hermes-agent 0.19.0",
)
class IdempotencyAcrossSessions(Rules):
    def replay_scope(self, owner: str, chain: str) -> tuple[str, str]:
        return super().replay_scope(owner, "any" if chain else chain)


@defect(
    "idempotency-across-principals",
    "An Idempotency-Key replays the answer of another principal.",
    "hermes-agent PR 39643",
)
class IdempotencyAcrossPrincipals(Rules):
    def replay_scope(self, owner: str, chain: str) -> tuple[str, str]:  # noqa: ARG002 - that is the defect
        return "everybody", chain


@defect("idempotency-ignores-body", "An Idempotency-Key replays its answer to another question.")
class IdempotencyIgnoresBody(Rules):
    def check_replay(self, kept: str, sent: str) -> None:
        pass


@defect("idempotency-key-forgotten", "A request with an Idempotency-Key that was used is run again.")
class IdempotencyKeyForgotten(Rules):
    def replayed(self, found: T | None) -> T | None:  # noqa: ARG002 - that is the defect
        return None


@defect("replay-stores-twice", "A replay stores the question once more.")
class ReplayStoresTwice(Rules):
    def left_by_replay(self, asked: Sequence[Message]) -> Messages:
        return list(asked[-1:])


# What answers tell


@defect("answers-cacheable", "Answers say nothing about caching.")
class AnswersCacheable(Rules):
    def cache_control(self, method: str, *, streamed: bool) -> str | None:  # noqa: ARG002 - that is the defect
        return None


@defect("streams-no-cache-only", "Streams say `no-cache`, which lets a cache keep them.")
class StreamsNoCacheOnly(Rules):
    def cache_control(self, method: str, *, streamed: bool) -> str | None:
        return "no-cache" if streamed else super().cache_control(method, streamed=streamed)


@defect("stored-content-cacheable", "What is read again may be kept by caches.")
class StoredContentCacheable(Rules):
    def cache_control(self, method: str, *, streamed: bool) -> str | None:
        return "private, max-age=60" if method == "GET" else super().cache_control(method, streamed=streamed)


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
class ErrorRepeatsKey(Rules):
    def unknown_key(self, fields: Iterable[tuple[str, str]]) -> Refusal:
        sent = next((value for name, value in fields if name.lower() == "authorization"), "none")
        return Refusal(Case.INVALID_KEY, f"The API key is wrong: {sent}")


@defect("failed-stream-shows-trace", "A stream that fails in the middle ends with a trace.")
class FailedStreamShowsTrace(_Telling):
    def more(self, refusal: Refusal) -> str:
        return "".join(traceback.format_exception(refusal)) if refusal.case is Case.UPSTREAM else ""


@defect("error-as-plain-text", "Errors are plain text.")
class ErrorAsPlainText(Rules):
    def error_text(self, body: dict[str, Any]) -> tuple[str, str]:
        return f"Error: {body['error']['message']}", "text/plain"


@defect("error-without-envelope", "Errors are JSON of their own kind, which OpenAI clients cannot read.")
class ErrorWithoutEnvelope(Rules):
    def error_text(self, body: dict[str, Any]) -> tuple[str, str]:
        return super().error_text({"detail": body["error"]["message"]})

"""Defects of CONTRACT: single requests that are answered wrongly, most of which no scenario sends, because nobody thinks of them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from continuity_server.defects.registry import defect
from continuity_server.http.body import expect
from continuity_server.http.chat import ChatHandler
from continuity_server.rules import Rules
from continuity_server.rules.compress import BRANCH, Session
from continuity_server.rules.echo import Fields, SessionInfo
from continuity_server.rules.error import Case
from continuity_server.rules.messages import Message, check_message
from continuity_server.store.deletions import Deletions
from continuity_server.store.records import SlugWrite, StoredResponse, StoredSlug
from continuity_server.store.store import Store
from continuity_server.turn.commit import Committer
from continuity_server.turn.resolve import Resolver
from continuity_server.turn.types import Destination, TurnRequest


@defect("null-field-refused", "A field that is null is refused, although null is as good as nothing.")
class NullFieldRefused(Rules):
    def model_takes(self, name: str, value: object) -> bool:
        return value is not None and super().model_takes(name, value)


@defect("page-of-none", "A list of sessions takes 0 for its limit.")
class PageOfNone(Rules):
    def page_limit(self, text: str) -> int:
        return 0 if text == "0" else super().page_limit(text)


@defect("error-as-html", "That a session is unknown is told in HTML's name.")
class ErrorAsHtml(Rules):
    def error_text(self, body: dict[str, Any]) -> tuple[str, str]:
        text, content_type = super().error_text(body)
        unknown = body["error"]["code"] == Case.SESSION_NOT_FOUND.value.code
        return text, "text/html" if unknown else content_type


@defect("bare-part-500", "A part of a message that is no text and has nothing beside its type ends in 500.")
class BarePart500(ChatHandler):
    def _messages(self, body: dict[str, Any]) -> list[Message]:
        for index, message in enumerate(expect(body, "messages", list, [])):
            content = check_message(message, f"messages[{index}]").get("content")
            bare = [part for part in content if len(part) == 1] if isinstance(content, list) else []
            assert all(part["text"] for part in bare)
        return super()._messages(body)


@defect("method-without-allow", "A method that a path does not take is refused without those that it takes.")
class MethodWithoutAllow(Rules):
    def allow_fields(self, methods: Iterable[str]) -> list[tuple[str, str]]:  # noqa: ARG002 - that is the defect
        return []


@defect("bad-utf8-replaced", "Bytes of a body that are no UTF-8 are replaced, and the turn is answered.")
class BadUtf8Replaced(Rules):
    def decoded(self, raw: bytes) -> str:
        return raw.decode("utf-8-sig", "replace")


@defect("deep-body-500", "A body that is nested deeper than encoders can bear ends in 500.")
class DeepBody500(Rules):
    def is_too_deep(self, body: object) -> bool:
        if super().is_too_deep(body):
            raise MemoryError
        return False


@defect("longer-key-taken", "A key with something behind it is taken for the key.")
class LongerKeyTaken(Rules):
    def is_key(self, known: str, sent: str) -> bool:
        return super().is_key(known, sent[: len(known)])


@defect("long-id-not-told", "A long id, such as one of more than 200 characters, is not told.")
class LongIdNotTold(Rules):
    def answer_fields(self, session_info: SessionInfo) -> Fields:
        return super().answer_fields(session_info) if len(session_info.id) <= 200 else []  # noqa: PLR2004 - that is the defect


@defect("input-text-not-derived", "A part of the type input_text is no part of the opening.")
class InputTextNotDerived(Rules):
    def part_counts(self, part: Mapping[str, Any]) -> bool:
        return super().part_counts(part) and part["type"] != "input_text"


@defect("slug-cut-at-nul", "A slug ends at its first NUL, as strings of C do.")
class SlugCutAtNul(Resolver):
    def _slug(self, request: TurnRequest, slug: str) -> Destination:
        return super()._slug(request, slug.partition("\0")[0])


@defect("id-cut-at-comma", "The continuity header is read as a list, and its first value counts.")
class IdCutAtComma(Rules):
    def named_id(self, value: str) -> str | None:
        return super().named_id(value.partition(",")[0].rstrip(" "))


@defect("negative-length-taken", "A negative max_tokens is passed on to the model.")
class NegativeLengthTaken(Rules):
    def model_takes(self, name: str, value: object) -> bool:
        return name == "max_tokens" or super().model_takes(name, value)


@defect("content-type-ignored", "A body is read as JSON, whatever it is announced as.")
class ContentTypeIgnored(Rules):
    def is_json(self, content_type: str) -> bool:  # noqa: ARG002 - that is the defect
        return True


# Sequences: what breaks only where two things happen in an order that no scenario has


@defect("delete-empties-branches", "DELETE of a response takes away what was said in the branches of its session.")
class DeleteEmptiesBranches(Deletions):
    def response(self, owner: str, response: str) -> None:
        query = (
            "DELETE FROM messages WHERE owner=?1 AND session IN (SELECT b.id FROM sessions b JOIN responses r "
            "ON r.owner=b.owner AND r.session=b.parent WHERE b.owner=?1 AND b.kind='branch' AND r.response_id=?2)"
        )
        self._connection.execute(query, (owner, response))
        super().response(owner, response)


@defect("delete-unanchors-siblings", "After DELETE of a response nobody knows where the others of its session stand.")
class DeleteUnanchorsSiblings(Deletions):
    def response(self, owner: str, response: str) -> None:
        query = (
            "UPDATE responses SET upto=0 WHERE owner=?1 AND response_id<>?2 "
            "AND session=(SELECT session FROM responses WHERE owner=?1 AND response_id=?2)"
        )
        self._connection.execute(query, (owner, response))
        super().response(owner, response)


class _Stuck:
    """The sessions of slugs that went on without their last response."""

    sessions: ClassVar[set[str]] = set()


class _StuckSlug(Committer):
    def _slug(self, destination: Destination, session: str) -> SlugWrite | None:
        return super()._slug(destination, destination.tip if destination.tip in _Stuck.sessions else session)


@defect(
    "evicted-slug-misses-rotation",
    "A slug that went on without its last response does not go along when its session rotates.",
    also=(_StuckSlug,),
)
class EvictedSlugMissesRotation(Resolver):
    def _slug_session(self, slug: StoredSlug) -> str:
        session = super()._slug_session(slug)
        if slug.response_gone:
            _Stuck.sessions.add(session)
        return session

    def _slug_tip(self, owner: str, session: str) -> Session | None:
        stuck = session in _Stuck.sessions
        return self._store.session(owner, session) if stuck else super()._slug_tip(owner, session)


@defect(
    "stale-id-follows-branch",
    "The id of a rotated session goes on in a branch that was made from one of its responses since.",
)
class StaleIdFollowsBranch(Resolver):
    def __init__(self, store: Store, rules: Rules) -> None:
        super().__init__(store, rules)
        self._rotated: set[str] = set()
        self._branches: dict[str, str] = {}

    def _branch(self, owner: str, session: Session, response: StoredResponse) -> Destination:
        branch = super()._branch(owner, session, response)
        if session.id in self._rotated:
            self._branches[session.id] = branch.tip
        return branch

    def _tip(self, owner: str, start: Session) -> Session:
        if start.next is not None:
            self._rotated.add(start.id)
        return self._store.session(owner, self._branches.get(start.id, "")) or super()._tip(owner, start)


@defect("branch-of-branch-replaces-it", "A branch from an older response of a branch takes its place.")
class BranchOfBranchReplacesIt(Resolver):
    def __init__(self, store: Store, rules: Rules) -> None:
        super().__init__(store, rules)
        self._born: set[str] = set()

    def _branch(self, owner: str, session: Session, response: StoredResponse) -> Destination:
        branch = super()._branch(owner, session, response)
        self._born.add(branch.tip)
        return replace(branch, tip=session.id, root=session.id) if session.id in self._born else branch


@defect("branch-lost-on-restart", "A branch that an earlier process made is empty when a header names it.")
class BranchLostOnRestart(Resolver):
    def __init__(self, store: Store, rules: Rules) -> None:
        super().__init__(store, rules)
        self._made: set[str] = set()

    def _branch(self, owner: str, session: Session, response: StoredResponse) -> Destination:
        branch = super()._branch(owner, session, response)
        self._made.add(branch.tip)
        return branch

    def _continued(self, start: Session, tip: Session, *, derived: bool) -> Destination:
        destination = super()._continued(start, tip, derived=derived)
        lost = tip.kind == BRANCH and tip.id not in self._made
        return replace(destination, session=Session("", tip.root)) if lost else destination

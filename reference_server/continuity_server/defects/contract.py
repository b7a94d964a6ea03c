"""Defects of CONTRACT: single requests that are answered wrongly, most of which no scenario sends, because nobody thinks of them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from continuity_server.defects.registry import defect
from continuity_server.rules import Rules
from continuity_server.rules.compress import BRANCH, Session
from continuity_server.rules.echo import Fields, SessionInfo, Surface
from continuity_server.rules.error import Case
from continuity_server.rules.messages import Message
from continuity_server.rules.slug import Part
from continuity_server.settings import Options


@defect("null-field-refused", "A field that is null is refused, although null is as good as nothing.")
class NullFieldRefused(Rules):
    def is_absent(self, value: object) -> bool:  # noqa: ARG002 - that is the defect
        return False


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
class BarePart500(Rules):
    def readable(self, message: Message) -> Message:
        content = message.get("content")
        bare = [part for part in content if len(part) == 1] if isinstance(content, list) else []
        return super().readable(bare[0]["text"] if bare else message)


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


@defect("long-id-not-told", "An id of more than 200 characters is not told.")
class LongIdNotTold(Rules):
    def answer_fields(self, told: SessionInfo, surface: Surface, *, streamed: bool) -> Fields:
        fields = super().answer_fields(told, surface, streamed=streamed)
        return fields if len(told.id) <= 200 else []  # noqa: PLR2004 - that is the defect


@defect("input-text-not-derived", "A part of the type input_text is no part of the opening.")
class InputTextNotDerived(Rules):
    def part_counts(self, part: Mapping[str, Any]) -> bool:
        return super().part_counts(part) and part["type"] != "input_text"


@defect("slug-cut-at-nul", "A slug ends at its first NUL, as strings of C do.")
class SlugCutAtNul(Rules):
    def slug_name(self, slug: str) -> str:
        return super().slug_name(slug).partition("\0")[0]


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

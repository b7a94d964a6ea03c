"""Defects of SLUG: slugs that lose their session, share it or are not what was sent, and responses that come back or never were."""

import secrets
from collections.abc import Callable, Sequence

from continuity_server.defects.registry import defect
from continuity_server.rules import Rules
from continuity_server.rules.error import Case, Refusal
from continuity_server.rules.messages import Message, Messages
from continuity_server.rules.slug import Part, T
from continuity_server.settings import Options


@defect("slugs-share-a-session", "All slugs of a principal are in one session.")
class SlugsShareASession(Rules):
    def new_slug_session(self, minted: str) -> str:  # noqa: ARG002 - that is the defect
        return "sess_of_all_slugs"


@defect("slug-new-session-each-turn", "Every turn of a slug starts another session.", "hermes-agent#16517")
class SlugNewSessionEachTurn(Rules):
    def known_slug(self, found: T | None) -> T | None:  # noqa: ARG002 - that is the defect
        return None


@defect(
    "slug-forks-on-eviction",
    "A slug whose last response was evicted starts another session without a word.",
    "hermes-agent#16517",
)
class SlugForksOnEviction(Rules):
    def without_response(self, session: str) -> str | None:  # noqa: ARG002 - that is the defect
        return None


@defect("slug-lost-on-eviction", "A slug whose last response was evicted is 404 for good.", "hermes-agent 0.13.0")
class SlugLostOnEviction(Rules):
    def without_response(self, session: str) -> str | None:  # noqa: ARG002 - that is the defect
        raise Refusal(Case.PREVIOUS_RESPONSE_NOT_FOUND, "There is no response with this id.")


@defect("slug-lost-on-restart", "Slugs are known to the process that first heard of them only.", "hermes-agent#16517")
class SlugLostOnRestart(Rules):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._process = secrets.token_hex(8)

    def slug_name(self, slug: str) -> str:
        return f"{self._process} {slug}"


@defect(
    "slug-mapping-in-response-cache",
    "Slugs live in the cache of responses: one that falls out of it takes its slug along.",
    "hermes-agent#16517",
)
class SlugMappingInResponseCache(Rules):
    def eviction_takes_slug(self) -> bool:
        return True


@defect("slug-amnesia-after-eviction", "A slug whose last response was evicted keeps its id and forgets its turns.")
class SlugAmnesiaAfterEviction(Rules):
    def slug_history(self, stored: Sequence[Message], *, response_gone: bool) -> Messages:
        return [] if response_gone else list(stored)


@defect(
    "previous-response-unknown-starts-fresh",
    "A previous_response_id that cannot be found starts a new session without a word.",
    "openclaw 2026.9.6",
)
class PreviousResponseUnknownStartsFresh(Rules):
    def continued(self, found: T | None) -> T | None:
        return found


@defect("slug-and-previous-both-accepted", "A slug beside a previous_response_id is accepted, and the slug wins.")
class SlugAndPreviousBothAccepted(Rules):
    def check_one_of(self, slug: str | None, previous: str | None) -> None:
        pass


@defect("store-false-stores-mapping", "A turn with `store: false` moves its slug.", "hermes-agent@7a3ccea42e")
class StoreFalseStoresMapping(Rules):
    def parts(self, *, store: bool) -> frozenset[Part]:
        return super().parts(store=store) | {Part.MAPPING}


@defect("store-false-stores-messages", "A turn with `store: false` is in the history of its session.")
class StoreFalseStoresMessages(Rules):
    def parts(self, *, store: bool) -> frozenset[Part]:
        return super().parts(store=store) | {Part.MESSAGES}


@defect("store-false-stores-response", "A response with `store: false` can be read and continued.")
class StoreFalseStoresResponse(Rules):
    def parts(self, *, store: bool) -> frozenset[Part]:
        return super().parts(store=store) | {Part.RESPONSE}


@defect(
    "store-false-ignored", "`store: false` counts for nothing: the turn is stored like any other.", "openclaw 2026.9.6"
)
class StoreFalseIgnored(Rules):
    def parts(self, *, store: bool) -> frozenset[Part]:  # noqa: ARG002 - that is the defect
        return super().parts(store=True)


@defect("store-false-rotates", "A turn with `store: false` rotates a session that is due for it, into an empty one.")
class StoreFalseRotates(Rules):
    def parts(self, *, store: bool) -> frozenset[Part]:
        return super().parts(store=store) | {Part.ROTATION}


@defect("slug-stuck-on-first-response", "A slug goes on from its first response for good: later turns are not seen.")
class SlugStuckOnFirstResponse(Rules):
    def slug_history(self, stored: Sequence[Message], *, response_gone: bool) -> Messages:  # noqa: ARG002 - that is the defect
        users = [index for index, message in enumerate(stored) if message["role"] == "user"]
        return list(stored[: users[1]]) if len(users) > 1 else list(stored)


@defect(
    "slug-history-doubles",
    "A slug's turn stores all that came before it once more: the history doubles with every turn, under the right id.",
    "hermes-agent 0.19.0",
)
class SlugHistoryDoubles(Rules):
    def slug_history(self, stored: Sequence[Message], *, response_gone: bool) -> Messages:  # noqa: ARG002 - that is the defect
        doubled: Messages = []
        for message in stored:
            doubled = [*doubled, *doubled, message] if message["role"] == "user" else [*doubled, message]
        return doubled


@defect("slug-stays-on-parent", "A slug whose session rotated goes on in the parent.", "hermes-agent#16938")
class SlugStaysOnParent(Rules):
    def slug_follows(self, before: str, after: str) -> str:  # noqa: ARG002 - that is the defect
        return before


@defect("slug-race-many-sessions", "First requests of one slug at once start a session each.", "hermes-agent 0.16.0")
class SlugRaceManySessions(Rules):
    def slug_lock(self, principal: str, slug: str | None, request: str) -> tuple[str, str, str]:  # noqa: ARG002 - that is the defect
        return ("request", principal, request)


@defect(
    "slug-race-loses-turns",
    "Of several first requests of one slug at once, each writes over what the ones before it left.",
    "adk-python#1733",
)
class SlugRaceLosesTurns(Rules):
    def overwrites(self, *, slug: bool, late: bool) -> bool:
        return slug and late


@defect("branch-sees-newer-turns", "A turn that goes on from an older response sees the newer turns too.")
class BranchSeesNewerTurns(Rules):
    def branched(self, upto: Sequence[Message], later: Callable[[], Sequence[Message]]) -> Messages:
        return [*upto, *later()]


@defect("branch-cuts-newer-turns", "A turn that goes on from an older response replaces what was said after it.")
class BranchCutsNewerTurns(Rules):
    def branch_session(self, session: str, minted: str) -> str:  # noqa: ARG002 - that is the defect
        return session


@defect(
    "previous-response-starts-fresh",
    "A previous_response_id starts a new session, although it is known.",
    "mlx-vlm#1046, litellm#11204",
)
class PreviousResponseStartsFresh(Rules):
    def continued(self, found: T | None) -> T | None:
        super().continued(found)
        return None


@defect("slug-folds-case", "Slugs that differ in case are one.")
class SlugFoldsCase(Rules):
    def slug_name(self, slug: str) -> str:
        return slug.lower()


@defect("slug-trimmed", "Blanks at both ends of a slug do not count.")
class SlugTrimmed(Rules):
    def slug_name(self, slug: str) -> str:
        return slug.strip() or slug


@defect("slug-cut", "Only the first 64 characters of a slug count.")
class SlugCut(Rules):
    def slug_name(self, slug: str) -> str:
        return slug[:64]


@defect("long-slug-accepted", "A slug of more than 256 characters is accepted.")
class LongSlugAccepted(Rules):
    def checked_slug(self, said: object) -> str:
        slug = said.get("id") if isinstance(said, dict) else said
        return slug if isinstance(slug, str) and slug else super().checked_slug(said)


@defect("slug-object-is-500", "A conversation given as an object is a 500.", "hermes-agent 0.19.0")
class SlugObjectIs500(Rules):
    def checked_slug(self, said: object) -> str:
        if isinstance(said, dict):
            raise Refusal(Case.INTERNAL, "The server has a defect.")
        return super().checked_slug(said)


@defect("deleted-response-still-there", "DELETE of a response answers that it is gone, and leaves it there.")
class DeletedResponseStillThere(Rules):
    def deleted(self) -> frozenset[Part]:
        return frozenset()


@defect("deleted-response-continues", "A deleted response can no longer be read, and still be continued from.")
class DeletedResponseContinues(Rules):
    def deleted(self) -> frozenset[Part]:
        return frozenset({Part.BODY})


@defect("delete-removes-slug", "DELETE of a response removes the slug that it belongs to.", "hermes-agent 0.16.0")
class DeleteRemovesSlug(Rules):
    def deleted(self) -> frozenset[Part]:
        return super().deleted() | {Part.MAPPING}


@defect(
    "slug-lost-on-response-delete",
    "A slug names the response that was deleted, and is 404 for good.",
    "hermes-agent 0.13.0",
)
class SlugLostOnResponseDelete(SlugLostOnEviction):
    def deleted(self) -> frozenset[Part]:
        return frozenset({Part.ROW})


@defect("slugs-not-bound-to-principal", "The same slug of two principals is one conversation.")
class SlugsNotBoundToPrincipal(Rules):
    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._first: dict[str, str] = {}

    def slug_owner(self, principal: str, slug: str) -> str:
        return self._first.setdefault(slug, principal)


@defect("responses-never-evicted", "Responses are kept for good, however many there are.", "vllm#48275")
class ResponsesNeverEvicted(Rules):
    def kept_responses(self, most: int) -> int:
        return most * 1000

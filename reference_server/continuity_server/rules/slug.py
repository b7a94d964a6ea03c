"""SLUG: what a slug is, which session it names, and what /v1/responses keeps and takes away. Pure: rows come as records."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, TypeVar

from continuity_server.rules.error import Case, Refusal, invalid
from continuity_server.rules.messages import Message, Messages

LONGEST_SLUG: Final = 256
T = TypeVar("T")


class Part(Enum):
    """What a turn of /v1/responses leaves, and what a deletion can take. An anchor is where a response can be continued from."""

    MESSAGES = "messages"
    RESPONSE = "response"
    MAPPING = "mapping"
    ROTATION = "rotation"
    BODY = "the response, but for its anchor"
    ROW = "the response, but for the slug that names it"
    BRANCHES = "what was said in the branches of its session"
    ANCHORS = "the anchors of the other responses of its session"


class SlugRules:
    """The rules about slugs and response ids."""

    def checked_slug(self, said: object) -> str:
        """SLUG-14: any non-empty string of up to 256 characters, or an object with such an `id`; every character is data."""
        slug = said.get("id") if isinstance(said, dict) else said
        if not isinstance(slug, str) or not slug or len(slug.strip()) > LONGEST_SLUG:
            raise invalid(f"conversation is no text of 1 to {LONGEST_SLUG} characters.", "conversation")
        return slug

    def check_one_of(self, slug: str | None, previous: str | None) -> None:
        """SLUG-08: `conversation` and `previous_response_id` exclude each other."""
        if slug is not None and previous is not None:
            message = "conversation and previous_response_id exclude each other. Send one of them."
            raise Refusal(Case.MUTUALLY_EXCLUSIVE, message, param="previous_response_id")

    def slug_name(self, slug: str) -> str:
        """SLUG-04, -14: a slug is kept as it is, so that any process finds it."""
        return slug

    def slug_owner(self, principal: str, slug: str) -> str:  # noqa: ARG002 - the rule is that the slug does not matter
        """SLUG-17: slugs are the principal's own."""
        return principal

    def known_slug(self, found: T | None) -> T | None:
        """SLUG-02, -10: a slug that has a row goes on in its session."""
        return found

    def new_slug_session(self, minted: str) -> str:
        """SLUG-01: a new slug gets a fresh session; two slugs never share one."""
        return minted

    def without_response(self, session: str) -> str | None:
        """SLUG-03, -05: the response that the slug last named is gone; the slug keeps its session all the same."""
        return session

    def slug_history(self, stored: Sequence[Message], *, response_gone: bool) -> Messages:  # noqa: ARG002 - the rule is that it does not matter
        """SLUG-06, -10: all turns before, whatever became of the responses."""
        return list(stored)

    def slug_follows(self, before: str, after: str) -> str:  # noqa: ARG002 - the rule is that the tip counts
        """SLUG-11, COMPRESS-15: the slug goes along, from the parent to its child."""
        return after

    def slug_lock(self, principal: str, slug: str | None, request: str) -> tuple[str, str, str]:
        """SLUG-12: turns of one slug wait for each other, so that it is born once. Without a slug nobody waits."""
        return ("slug", principal, slug) if slug is not None else ("request", principal, request)

    def overwrites(self, *, slug: bool, late: bool) -> bool:  # noqa: ARG002 - the rule is that nothing is overwritten
        """SLUG-12: a turn is added to what is there, also where the session was born while its request waited."""
        return False

    def eviction_takes_slug(self) -> bool:
        """SLUG-05: the cache bounds the responses, and never the slugs."""
        return False

    def kept_responses(self, most: int) -> int:
        """SLUG-19: responses are not kept for good, but so many of them."""
        return most

    def parts(self, *, store: bool) -> frozenset[Part]:
        """SLUG-09: `store: false` writes nothing: no mapping, no response, no message, no rotation."""
        return frozenset({Part.MESSAGES, Part.RESPONSE, Part.MAPPING, Part.ROTATION}) if store else frozenset()

    def deleted(self) -> frozenset[Part]:
        """SLUG-15, -18: DELETE removes that response, and that response only."""
        return frozenset({Part.RESPONSE})

    def continued(self, found: T | None) -> T | None:
        """SLUG-07, -13: a response id continues its session; one that cannot be found is 404, never a silent new session."""
        if found is None:
            message = "There is no response with the id given in previous_response_id. Start anew, or name another."
            raise Refusal(Case.PREVIOUS_RESPONSE_NOT_FOUND, message, param="previous_response_id")
        return found

    def branch_session(self, session: str, minted: str) -> str:  # noqa: ARG002 - the rule is that the line is left alone
        """SLUG-13: a branch has an id of its own; the newer turns stay as they were."""
        return minted

    def branched(self, upto: Sequence[Message], later: Callable[[], Sequence[Message]]) -> Messages:  # noqa: ARG002 - the rule is that they do not matter
        """SLUG-13: a branch sees the turns up to its response."""
        return list(upto)

"""SLUG: what a slug may be, and which session a slug or a response id continues. Pure."""

from typing import Final

from continuity_server.rules.compress import Session
from continuity_server.rules.error import Case, Refusal, invalid

LONGEST_SLUG: Final = 256


class SlugRules:
    """The rules about slugs and response ids."""

    def checked_slug(self, value: object) -> str:
        """SLUG-14: any non-empty string of up to 256 characters, or an object with such an `id`; every character is data."""
        slug = value.get("id") if isinstance(value, dict) else value
        if not isinstance(slug, str) or not slug or len(slug) > LONGEST_SLUG:
            raise invalid(f"conversation is no text of 1 to {LONGEST_SLUG} characters.", "conversation")
        return slug

    def check_one_of(self, slug: str | None, previous: str | None) -> None:
        """SLUG-08: `conversation` and `previous_response_id` exclude each other."""
        if slug is not None and previous is not None:
            message = "conversation and previous_response_id exclude each other. Send one of them."
            raise Refusal(Case.MUTUALLY_EXCLUSIVE, message, param="previous_response_id")

    def check_unbound(self, slug: str | None) -> None:
        """SLUG-01: a new slug takes the session of the header only if that session has no slug yet."""
        if slug is not None:
            message = "The session that the header names belongs to another conversation. Leave one of the two out."
            raise Refusal(Case.SESSION_CONFLICT, message, param="conversation")

    def is_newest(self, session: Session, *, epoch: int, upto: int, newest: int) -> bool:
        """SLUG-13: a response is continued in its session if nothing came after it; else it is branched from."""
        return session.next is None and session.epoch == epoch and newest == upto

"""Names of our own: a generated id, slug or key never names what somebody else has stored.

Turns write and deletions delete, so on a target that has lived `sess_1` may be a real session. Every generated name gets a prefix; one that is too
long stays exactly as long as it was, so that a bound is still tried at its border. Each generated turn has a session and a slug of its own: what is made up
likes the same few names, and hundreds of turns in one session would judge how long a history the target bears.
"""

import itertools
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from continuity_conformance.scenario.context import Context
from continuity_spec.derivation import salted

LONGEST: Final = 256
_PATH_IDS: Final = ("session_id", "response_id")


@dataclass(frozen=True, slots=True)
class Namespace:
    """The names of one run. `lived`: openings are salted too, because a derived turn overwrites what its opening has."""

    prefix: str
    lived: bool
    _numbers: itertools.count = field(default_factory=itertools.count)  # type: ignore[type-arg]

    @classmethod
    def of(cls, context: Context, seed: int) -> "Namespace":
        """On a fresh target the same seed makes the same names."""
        lived = context.server.may_hold_sessions
        return cls(f"continuity-{secrets.token_hex(4) if lived else seed}-", lived)

    def known(self, value: object) -> object:
        """A name of ours for a generated one, always the same. What is no text, or empty, is left as it is."""
        return _prefixed(self.prefix, value)

    def new(self, value: object) -> object:
        """One that no other request has."""
        return _prefixed(f"{self.fresh()}-", value)

    def fresh(self) -> str:
        """A name that was not there before."""
        return f"{self.prefix}{next(self._numbers)}"

    def path(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.known(value) if name in _PATH_IDS else value for name, value in parameters.items()}

    def fields(self, header: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """An Idempotency-Key that was used with another body is refused whatever else is sent: each request has a new one.

        Blanks around a value are no part of it.
        """
        trimmed = {name: value.strip(" \t") if isinstance(value, str) else value for name, value in fields.items()}
        named = {name: self.new(value) if name.lower() == header.lower() else value for name, value in trimmed.items()}
        return {
            name: self.fresh() if name.lower() == "idempotency-key" and _may_be_key(value) else value
            for name, value in named.items()
        }

    def body(self, body: object) -> object:
        if not isinstance(body, dict):
            return body
        named = dict(body)
        for name, ours in (("conversation", self.new), ("previous_response_id", self.known)):
            if name in named:
                named[name] = _reference(named[name], ours)
        if self.lived and _has_user_message(named.get("messages")):
            named["messages"] = salted(named["messages"], self.prefix)
        return named


def _prefixed(prefix: str, value: object) -> object:
    if not isinstance(value, str) or not value.strip(" \t"):
        return value
    named = prefix + value
    return named if len(named) <= LONGEST else prefix[: len(value)] + value[len(prefix) :]


def _reference(value: object, ours: Callable[[object], object]) -> object:
    if isinstance(value, dict) and "id" in value:
        return {**value, "id": ours(value["id"])}
    return ours(value)


def _may_be_key(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST


def _has_user_message(messages: object) -> bool:
    """Whether an id would be derived from these: salt would make content of a wrong type right."""
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        return False
    opening = next((message for message in messages if message.get("role") == "user"), None)
    return opening is not None and isinstance(opening.get("content"), str | list)

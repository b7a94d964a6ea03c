"""Names that belong to this run: a generated id, slug or key never names data that somebody else has stored.

Turns write and deletions delete, and on a target that is in use `sess_1` may be a real session. So every generated
name gets a prefix. A name that becomes too long keeps its length, so that a length limit is still tried at its limit.
Each generated turn has its own session and slug: generators repeat a few names, and hundreds of turns in one session
would test how long a history the target can handle.
"""

import itertools
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from continuity_conformance.scenario.context import Context
from continuity_conformance.target.id_form import IdForm
from continuity_spec.derivation import salted

MAX_LENGTH: Final = 256
_VALID_ID: Final = re.compile(rf"[!-~]{{1,{MAX_LENGTH}}}")
_VALID_SLUG: Final = re.compile(rf"(?=.*\S).{{1,{MAX_LENGTH}}}", re.DOTALL)
_OWN_IDS: Final = ("session_id", "conversation_id")
_PATH_IDS: Final = ("session_id", "response_id", "conversation_id")


@dataclass(frozen=True, slots=True)
class RunNames:
    """The names of one run.

    `salt_openings` is for a target that is in use: a derived turn would write to the session with the same opening.
    """

    prefix: str
    salt_openings: bool
    ids: IdForm | None = None
    """The form that the target demands of session ids and slugs."""
    _numbers: itertools.count = field(default_factory=itertools.count)  # type: ignore[type-arg]

    @classmethod
    def of(cls, context: Context, seed: int) -> "RunNames":
        """Return the names for a target. On a fresh target the same seed makes the same names."""
        in_use = context.server.may_hold_sessions
        own = secrets.token_hex(4) if in_use else f"{seed}again" if "again" in context.shared else str(seed)
        return cls(f"continuity-{own}-", in_use, context.target.profile.ids)

    def prefixed(self, value: object) -> object:
        """Return a generated name with our prefix, the same each time. A value that is no text, or blank, is unchanged."""
        return _with_prefix(self.prefix, value)

    def unique(self, value: object) -> object:
        """Return a generated name with a prefix that no other request has, or of the form that the target demands."""
        return self._formed(_with_prefix(f"{self.new()}-", value))

    def slug(self, value: object) -> object:
        """The same for a slug, which may be any text, with blanks and all."""
        return self._formed(_with_prefix(f"{self.new()}-", value), _VALID_SLUG)

    def session(self) -> str:
        """Return a session id that is new in this run."""
        return str(self._formed(self.new()))

    def _formed(self, name: object, valid: re.Pattern[str] = _VALID_ID) -> object:
        """Return an id of the form that the target demands. A name that no server has to accept stays as it is."""
        if self.ids is None or not isinstance(name, str) or not valid.fullmatch(name):
            return name
        return self.ids.id_of(name)

    def new(self) -> str:
        """Return a name that is new in this run."""
        return f"{self.prefix}{next(self._numbers)}"

    def path_parameters(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        named = {name: self.prefixed(value) if name in _PATH_IDS else value for name, value in parameters.items()}
        return {name: self._formed(value) if name in _OWN_IDS else value for name, value in named.items()}

    def headers(self, session_header: str, headers: Mapping[str, Any]) -> dict[str, Any]:
        """Replace the session id and the Idempotency-Key, and trim blanks, which are no part of a header's value.

        Every request has a new Idempotency-Key: one that was used with another body is always refused.
        """
        trimmed = {name: value.strip(" \t") if isinstance(value, str) else value for name, value in headers.items()}
        named = {
            name: self.unique(value) if name.lower() == session_header.lower() else value
            for name, value in trimmed.items()
        }
        return {
            name: self.new() if name.lower() == "idempotency-key" and _is_valid_key(value) else value
            for name, value in named.items()
        }

    def body(self, body: object) -> object:
        """Replace the slug and the response id in a body, and salt its opening where that is needed."""
        if not isinstance(body, dict):
            return body
        named = dict(body)
        for name, rename in (("conversation", self.slug), ("previous_response_id", self.prefixed)):
            if name in named:
                named[name] = _renamed_reference(named[name], rename)
        if self.salt_openings and _has_user_message(named.get("messages")):
            named["messages"] = salted(named["messages"], self.prefix)
        return named


def _with_prefix(prefix: str, value: object) -> object:
    if not isinstance(value, str) or not value.strip(" \t"):
        return value
    named = prefix + value
    return named if len(named) <= MAX_LENGTH else prefix[: len(value)] + value[len(prefix) :]


def _renamed_reference(value: object, rename: Callable[[object], object]) -> object:
    """Rename a reference, which is a name or an object with an `id`."""
    if isinstance(value, dict) and "id" in value:
        return {**value, "id": rename(value["id"])}
    return rename(value)


def _is_valid_key(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_LENGTH


def _has_user_message(messages: object) -> bool:
    """Whether an id is derived from these messages. Salt would turn content of a wrong type into valid content."""
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        return False
    opening = next((message for message in messages if message.get("role") == "user"), None)
    return opening is not None and isinstance(opening.get("content"), str | list)

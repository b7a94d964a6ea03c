"""Credentials: the header fields that every request carries, and the one of them that carries a principal's key."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from continuity_conformance.http.client import USER_AGENT

if TYPE_CHECKING:
    from continuity_conformance.target.profile import Profile

_KEY: Final = "{key}"


@dataclass(frozen=True, slots=True)
class KeyField:
    """How a key is sent: the name of the field, and its value with `{key}` in it."""

    name: str = "Authorization"
    value: str = f"Bearer {_KEY}"

    @classmethod
    def read(cls, line: str) -> "KeyField":
        """`X-Api-Key: {key}`, as a profile writes it."""
        name, _, value = line.partition(":")
        return cls(name.strip(), value.strip())

    @property
    def usual(self) -> bool:
        """Whether it is what OpenAI's own clients send."""
        return self == KeyField()

    def filled(self, key: str) -> tuple[str, str]:
        return self.name, self.value.replace(_KEY, key)


def standing_fields(profile: "Profile", key: str) -> list[tuple[str, str]]:
    """Who we are, the profile's own headers, and the key where there is one."""
    fields = [("User-Agent", USER_AGENT), *profile.headers.items()]
    return [*fields, profile.key_field.filled(key)] if key else fields

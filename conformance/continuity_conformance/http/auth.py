"""How a request carries a principal's key."""

from dataclasses import dataclass
from typing import Final

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

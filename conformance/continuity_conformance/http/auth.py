"""How a request carries a principal's key."""

from dataclasses import dataclass
from typing import Final

_KEY: Final = "{key}"


@dataclass(frozen=True, slots=True)
class KeyField:
    """The header field for the key: its name, and its value with `{key}` as the placeholder."""

    name: str = "Authorization"
    value: str = f"Bearer {_KEY}"

    @classmethod
    def read(cls, line: str) -> "KeyField":
        """Parse a line such as `X-Api-Key: {key}`."""
        name, _, value = line.partition(":")
        return cls(name.strip(), value.strip())

    @property
    def usual(self) -> bool:
        """Whether this is what the OpenAI clients send."""
        return self == KeyField()

    def filled(self, key: str) -> tuple[str, str]:
        return self.name, self.value.replace(_KEY, key)

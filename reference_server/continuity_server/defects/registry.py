"""The registry of defects: a name, what is broken in a sentence, and the real issue that it re-enacts where one is known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from continuity_server.rules import Rules


@dataclass(frozen=True, slots=True)
class Defect:
    """One broken rule: a subclass of `Rules` that overrides one method. `under`: the option values that it shows under."""

    name: str
    text: str
    issue: str | None
    rules: type[Rules]
    under: Mapping[str, str]

    def as_json(self) -> dict[str, object]:
        return {"name": self.name, "text": self.text, "issue": self.issue, "under": dict(self.under)}


DEFECTS: Final[dict[str, Defect]] = {}


def defect(
    name: str, text: str, issue: str | None = None, *, under: Mapping[str, str] | None = None
) -> Callable[[type[Rules]], type[Rules]]:
    """Register a subclass of `Rules` under the name by which a server is started with it."""

    def register(rules: type[Rules]) -> type[Rules]:
        assert name not in DEFECTS, f"two defects are called {name}; rename one"
        DEFECTS[name] = Defect(name, text, issue, rules, under or {})
        return rules

    return register

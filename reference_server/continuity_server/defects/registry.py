"""The registry of defects: a name, what is broken in a sentence, and the real issue that it re-enacts where one is known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

_HERE: Final = __name__.rpartition(".")[0]
P = TypeVar("P", bound=type)


@dataclass(frozen=True, slots=True)
class Defect:
    """One broken behaviour: for each part that it changes, the subclass to build. `under`: the option values that it shows under."""

    name: str
    text: str
    issue: str | None
    parts: Mapping[type, type]
    under: Mapping[str, str]

    def as_json(self) -> dict[str, object]:
        return {"name": self.name, "text": self.text, "issue": self.issue, "under": dict(self.under)}


DEFECTS: Final[dict[str, Defect]] = {}


def defect(
    name: str,
    text: str,
    issue: str | None = None,
    *,
    under: Mapping[str, str] | None = None,
    also: tuple[type, ...] = (),
) -> Callable[[P], P]:
    """Register a subclass of a part of the server, and those that belong to it, under the name by which a server is started with it."""

    def register(cls: P) -> P:
        assert name not in DEFECTS, f"two defects are called {name}; rename one"
        classes: tuple[type, ...] = (cls, *also)
        parts = {_part_of(one): one for one in classes}
        assert len(parts) == len(classes), f"{name} replaces a part twice"
        DEFECTS[name] = Defect(name, text, issue, parts, under or {})
        return cls

    return register


def _part_of(cls: type) -> type:
    """Return the part that a class replaces: the first of its bases that is not a defect."""
    return next(base for base in cls.__mro__ if not base.__module__.startswith(_HERE))

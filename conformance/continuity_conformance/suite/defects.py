"""The defects that the bundled server can be started with, as data.

`defects.json` comes with the kit. `make matrix` writes it from what the server lists, and a test compares the two; reading it starts no process.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from continuity_conformance.core.errors import UsageError
from continuity_spec.errors import suggestion

FILE: Final = Path(__file__).with_name("defects.json")


@dataclass(frozen=True, slots=True)
class ListedDefect:
    """One broken rule of the bundled server. `under`: the option values that it needs."""

    name: str
    text: str
    issue: str | None
    under: Mapping[str, str]

    @property
    def cited(self) -> str:
        """What is broken, and the issue or release where it was seen."""
        return f"{self.text} ({self.issue})" if self.issue else self.text


@cache
def defects() -> Mapping[str, ListedDefect]:
    """All defects by name, in the server's order."""
    return {entry["name"]: ListedDefect(**entry) for entry in json.loads(FILE.read_text(encoding="utf-8"))}


def find(name: str, known: Mapping[str, ListedDefect]) -> ListedDefect:
    """The defect of this name. Raises UsageError that suggests the nearest name."""
    if name not in known:
        raise UsageError("There is no such defect.", where=name, do=_nearest(name, known))
    return known[name]


def _nearest(name: str, known: Mapping[str, ListedDefect]) -> str:
    hint = suggestion(name, known)
    return hint if hint.startswith("Did") else "`continuity defects` lists those that there are."

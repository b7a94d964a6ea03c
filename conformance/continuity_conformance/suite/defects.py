"""The defects that the bundled server can be started with, as it lists them itself. It is another program: asked, never imported."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from continuity_conformance.core.errors import KitError, UsageError
from continuity_spec.errors import suggestion

SERVER: Final = (sys.executable, "-m", "continuity_server")


@dataclass(frozen=True, slots=True)
class Defect:
    """One broken rule of the bundled server. `under`: the option values that it shows under."""

    name: str
    text: str
    issue: str | None
    under: Mapping[str, str]

    @property
    def cited(self) -> str:
        """What is broken, and where that was seen."""
        return f"{self.text} ({self.issue})" if self.issue else self.text


@cache
def defects() -> Mapping[str, Defect]:
    """Ask the bundled server for its defects, by name. Asked once in a process."""
    done = subprocess.run([*SERVER, "--defects"], capture_output=True, text=True, check=False)  # noqa: S603 # ours
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[-1:] or ["nothing"]
        raise KitError(f"the server cannot list its defects; it said: {said[0]}", where="continuity_server")
    return {entry["name"]: Defect(**entry) for entry in json.loads(done.stdout)}


def find(name: str, known: Mapping[str, Defect]) -> Defect:
    """The defect of this name. Raises UsageError with the nearest one that there is."""
    if name not in known:
        raise UsageError("There is no such defect.", where=name, do=_nearest(name, known))
    return known[name]


def _nearest(name: str, known: Mapping[str, Defect]) -> str:
    hint = suggestion(name, known)
    return hint if hint.startswith("Did") else "`continuity defects` lists those that there are."

"""What one run is asked to do, whichever command starts it."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from continuity_conformance.core.budget import Budget
from continuity_conformance.core.cache import user_cache
from continuity_spec import Level


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`words`, `classes` and `areas` name requirements; without any the whole release is meant.

    `report` is a folder; with None nothing is written.
    """

    target: str
    profile: Path | None = None
    fail_on: Level = Level.MUST
    report: Path | None = None
    words: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    areas: tuple[str, ...] = ()
    release: str | None = None
    baseline: Path | None = None
    accept_untested: bool = False
    budget: Budget = field(default_factory=Budget)
    wait: float = 0.0
    """How many seconds to wait until a running target answers."""

    @classmethod
    def read(cls, values: Mapping[str, Any], words: Sequence[str] = ()) -> Self:
        """Make them from the values of the option table (`option_table.values`)."""
        return cls(
            target=values["target"],
            profile=values["profile"],
            fail_on=Level(values["fail_on"]),
            report=values["report"],
            words=tuple(words),
            classes=tuple(name.capitalize() for name in _listed(values["class"])),
            areas=tuple(area.upper() for area in _listed(values["area"])),
            release=values["release"],
            baseline=values["baseline"],
            accept_untested=values["accept_untested"],
            budget=Budget(values["examples"], values["seed"]),
            wait=values["wait"],
        )

    def gates(self, level: Level) -> bool:
        """Whether a failure at this level fails the run."""
        return level.binding or self.fail_on is not Level.MUST


def _listed(given: Sequence[str]) -> list[str]:
    """`--area SLUG --area ECHO` and `--area SLUG,ECHO` are the same."""
    return [name.strip() for each in given for name in each.split(",") if name.strip()]


def cache_folder(folder: Path, target: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Where pytest's `--lf` keeps its data: in the user's cache, a folder for each pair of working folder and target."""
    key = hashlib.sha256(f"{folder}\n{target}".encode()).hexdigest()[:16]
    return user_cache(environ) / "pytest" / key

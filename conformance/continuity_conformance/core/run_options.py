"""What one run was asked to do. The same for both commands."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from continuity_conformance.core.budget import Budget
from continuity_conformance.core.cache import user_cache
from continuity_spec import Level


@dataclass(frozen=True, slots=True)
class Settings:
    """`words` and `areas` name requirements; none of them means the whole release. `report` is a folder; None means that nothing is written."""

    target: str
    profile: Path | None = None
    fail_on: Level = Level.MUST
    report: Path | None = None
    words: tuple[str, ...] = ()
    areas: tuple[str, ...] = ()
    release: str | None = None
    baseline: Path | None = None
    accept_untested: bool = False
    budget: Budget = field(default_factory=Budget)

    def gates(self, level: Level) -> bool:
        """Whether a failure at this level fails the run."""
        return level.binding or self.fail_on is not Level.MUST


def cache_folder(folder: Path, target: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Where `--lf` remembers. In the user's cache and not in the folder, and for each target of its own."""
    key = hashlib.sha256(f"{folder}\n{target}".encode()).hexdigest()[:16]
    return user_cache(environ) / "pytest" / key

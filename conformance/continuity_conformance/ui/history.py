"""The folders of earlier runs, in the user's cache: a folder for each run, named by its time, with the report of `continuity check --report`."""

import json
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from continuity_conformance.core.cache import user_cache
from continuity_conformance.ui.commands import RESULTS

_KEPT: Final = 20
_NAME: Final = re.compile(r"\d{8}-\d{6}-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A run in a few words. `target` is the same for runs of the same server."""

    id: str
    target: str
    started: str
    verdict: str
    passed: int
    failed: int

    @classmethod
    def read(cls, folder: Path) -> "EarlierRun | None":
        """None if the folder has no results: the run was cut off before it began."""
        try:
            data: Mapping[str, Any] = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
            counts = data["counts"]
            name = data["again"]["target"] or data["target"]["name"]
            return cls(folder.name, name, data["started"], data["verdict"], counts["pass"], counts["fail"])
        except (OSError, ValueError, KeyError, TypeError):
            return None


class RunHistory:
    """All runs of this user."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or user_cache() / "ui"

    def new(self) -> Path:
        """A new folder, which others on the machine cannot read. The oldest ones are deleted."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in self._folders()[_KEPT - 1 :]:
            shutil.rmtree(old, ignore_errors=True)
        made = self._folder / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"
        made.mkdir(mode=0o700)
        return made

    def folder(self, run: str) -> Path | None:
        """The folder of a run; None if there is no such run."""
        found = self._folder / run
        return found if _NAME.fullmatch(run) and found.is_dir() else None

    def runs(self) -> list[EarlierRun]:
        """The newest first."""
        return list(self._read())

    def before(self, run: str) -> EarlierRun | None:
        """The run before this one on the same target."""
        runs = self.runs()
        this = next((each for each in runs if each.id == run), None)
        return next((each for each in runs if this and each.id < run and each.target == this.target), None)

    def _read(self) -> Iterator[EarlierRun]:
        for folder in self._folders():
            run = EarlierRun.read(folder)
            if run is not None:
                yield run

    def _folders(self) -> list[Path]:
        if not self._folder.is_dir():
            return []
        return sorted((each for each in self._folder.iterdir() if _NAME.fullmatch(each.name)), reverse=True)

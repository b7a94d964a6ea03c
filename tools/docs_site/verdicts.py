"""The published runs in docs/results, as the site shows them: versions of one server in their order."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from continuity_conformance.core.verdicts import Verdict
from docs_site.repository import DOCS

RESULTS = DOCS / "results"


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """One run. `folder`: its name in docs/results."""

    folder: str
    server: str
    version: str
    data: Mapping[str, Any]
    verdicts: Mapping[str, Verdict]

    @property
    def title(self) -> str:
        return f"{self.server} {self.version}"

    @property
    def classes(self) -> Mapping[str, Mapping[str, Any]]:
        """By name. Empty for a run of a kit that had no classes yet."""
        return {each["name"]: each for each in self.data["classes"] if "applicable" in each}


@cache
def published_runs() -> list[PublishedRun]:
    found = [_read(path.parent.name) for path in RESULTS.glob("*/results.json")]
    return sorted(
        found, key=lambda run: (run.server, [int(part) if part.isdigit() else 0 for part in run.version.split(".")])
    )


def newest_runs() -> list[PublishedRun]:
    """The newest version of each server."""
    return list({run.server: run for run in published_runs()}.values())


def evidence(run: PublishedRun, identity: str, results: str) -> str:
    """The link to what a run found: to the transcript of a failure, or else to its verdict and reason."""
    page = "failures" if run.verdicts[identity] is Verdict.FAIL else "verdicts"
    return f"{results}/{run.folder}/{page}.md#{identity.lower()}"


def _read(folder: str) -> PublishedRun:
    data = json.loads((RESULTS / folder / "results.json").read_text(encoding="utf-8"))
    server, _, version = folder.rpartition("-")
    return PublishedRun(
        folder, server, version, data, {each["id"]: Verdict(each["verdict"]) for each in data["requirements"]}
    )

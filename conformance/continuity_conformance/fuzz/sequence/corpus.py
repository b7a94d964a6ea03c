"""The corpus of `continuity fuzz`: how far a search has come, and what it found. A folder that another run goes on from.

`progress.json` has the next seed and the totals; every finding is a file: a sequence as a requirement file, a request as the text of its failure.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from continuity_conformance.core.errors import UsageError
from continuity_conformance.core.verdicts import Result, Verdict
from continuity_spec import Requirement, load_requirements

_PROGRESS: Final = "progress.json"
_SEQUENCES: Final = "found-*.yaml"


@dataclass(frozen=True, slots=True)
class Progress:
    """The seed of the next round, and what all rounds so far came to."""

    seed: int = 1
    rounds: int = 0
    requests: int = 0
    seconds: float = 0.0

    def after(self, requests: int, seconds: float) -> "Progress":
        return Progress(self.seed + 1, self.rounds + 1, self.requests + requests, round(self.seconds + seconds, 1))


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found: where it is written down, what it is, and the words behind `continuity run` that show it again."""

    file: Path
    what: str
    again: str


class Corpus:
    """One folder. `progress` is written after each round, so that a run that was stopped loses one round at most."""

    def __init__(self, folder: Path, seed: int | None) -> None:
        self.folder = folder
        self.progress = _read(folder / _PROGRESS)
        if seed is not None:
            self.progress = replace(self.progress, seed=seed)
        self._known = {path.name for path in folder.glob("found-*")}

    def sequences(self) -> list[Requirement]:
        """The sequences that were found before, each under the name of its file."""
        found = [(path, load_requirements(path)) for path in sorted(self.folder.glob(_SEQUENCES))]
        return [replace(entry, id=path.stem) for path, entries in found for entry in entries]

    def keep(self, results: Sequence[Result], again: str, seed: int) -> list[Finding]:
        """Write down what failed and was not known yet. The checks have saved the sequences themselves."""
        failed = [result for result in results if result.verdict is Verdict.FAIL]
        requests = [result for result in failed if f"continuity run {self.folder}" not in result.failure]
        findings = [self.sequence(path.stem, again) for path in sorted(self.folder.glob(_SEQUENCES))]
        findings += [self._request(result, f"{again} --seed {seed}") for result in requests]
        new = [finding for finding in findings if finding.file.name not in self._known]
        self._known |= {finding.file.name for finding in new}
        return new

    def sequence(self, name: str, again: str) -> Finding:
        path = self.folder / f"{name}.yaml"
        [entry] = load_requirements(path)
        return Finding(path, entry.why, f"{path} {again}")

    def advance(self, requests: int, seconds: float) -> None:
        self.progress = self.progress.after(requests, seconds)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / _PROGRESS).write_text(json.dumps(asdict(self.progress), indent=1) + "\n", encoding="utf-8")

    def _request(self, result: Result, again: str) -> Finding:
        """Known by where it shows, not by the data that showed it: those are others in each round."""
        first = next(one for one in result.evidence if one.outcome is Verdict.FAIL)
        mark = hashlib.sha256(f"{result.id} {first.step} {first.expectation}".encode()).hexdigest()[:8]
        path = self.folder / f"found-{mark}.txt"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            path.write_text(result.failure + "\n", encoding="utf-8")
        return Finding(path, result.reason, f"{result.id} {again}")


def _read(path: Path) -> Progress:
    if not path.is_file():
        return Progress()
    try:
        return Progress(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        raise UsageError(
            "this is not the progress of a search.",
            where=str(path),
            do="Name another folder with --corpus, or delete the file.",
        ) from None

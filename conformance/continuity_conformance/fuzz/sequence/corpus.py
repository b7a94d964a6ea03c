"""The corpus of `continuity fuzz`: a folder with the progress of a search and its findings. A later run continues it.

`progress.json` has the next seed and the totals. Each finding is a file: a sequence is a requirement file, a request is
the text of its failure.
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
class CorpusProgress:
    """The seed of the next round, and the totals of all rounds so far."""

    seed: int = 1
    rounds: int = 0
    requests: int = 0
    seconds: float = 0.0

    def after_round(self, requests: int, seconds: float) -> "CorpusProgress":
        return CorpusProgress(
            self.seed + 1, self.rounds + 1, self.requests + requests, round(self.seconds + seconds, 1)
        )


@dataclass(frozen=True, slots=True)
class SavedFinding:
    """A finding: its file, a summary, and the arguments of `continuity run` that reproduce it."""

    file: Path
    summary: str
    run_arguments: str


class Corpus:
    """One folder. Progress is saved after each round, so that a run that is stopped loses one round at most."""

    def __init__(self, folder: Path, seed: int | None) -> None:
        self.folder = folder
        self.progress = _read_progress(folder / _PROGRESS)
        if seed is not None:
            self.progress = replace(self.progress, seed=seed)
        self._known = {path.name for path in folder.glob("found-*")}

    def sequences(self) -> list[Requirement]:
        """Return the saved sequences, each with the name of its file as its id."""
        saved = [(path, load_requirements(path)) for path in sorted(self.folder.glob(_SEQUENCES))]
        return [replace(entry, id=path.stem) for path, entries in saved for entry in entries]

    def save_new(self, results: Sequence[Result], target_arguments: str, seed: int) -> list[SavedFinding]:
        """Save the failures that are new, and return them. The checks have saved the sequences themselves."""
        failed = [result for result in results if result.verdict is Verdict.FAIL]
        requests = [result for result in failed if f"continuity run {self.folder}" not in result.failure]
        findings = [self.sequence(path.stem, target_arguments) for path in sorted(self.folder.glob(_SEQUENCES))]
        findings += [self._save_request(result, f"{target_arguments} --seed {seed}") for result in requests]
        new = [finding for finding in findings if finding.file.name not in self._known]
        self._known |= {finding.file.name for finding in new}
        return new

    def sequence(self, name: str, target_arguments: str) -> SavedFinding:
        path = self.folder / f"{name}.yaml"
        [entry] = load_requirements(path)
        return SavedFinding(path, entry.why, f"{path} {target_arguments}")

    def save_progress(self, requests: int, seconds: float) -> None:
        """Add a round to the progress and save it."""
        self.progress = self.progress.after_round(requests, seconds)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / _PROGRESS).write_text(json.dumps(asdict(self.progress), indent=1) + "\n", encoding="utf-8")

    def _save_request(self, result: Result, run_arguments: str) -> SavedFinding:
        """Save a failed request. The step and expectation identify it, as the data differ in each round."""
        first = result.shown_by[0]
        digest = hashlib.sha256(f"{result.id} {first.step} {first.expectation}".encode()).hexdigest()[:8]
        path = self.folder / f"found-{digest}.txt"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            path.write_text(result.failure + "\n", encoding="utf-8")
        return SavedFinding(path, result.reason, f"{result.id} {run_arguments}")


def _read_progress(path: Path) -> CorpusProgress:
    if not path.is_file():
        return CorpusProgress()
    try:
        return CorpusProgress(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        raise UsageError(
            "this is not the progress of a search.",
            where=str(path),
            do="Name another folder with --corpus, or delete the file.",
        ) from None

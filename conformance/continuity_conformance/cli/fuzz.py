"""`continuity fuzz`: random testing for as long as one likes, in rounds of another seed each, on a corpus that can be gone on from."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from continuity_conformance.cli.target import add_target

if TYPE_CHECKING:
    from continuity_conformance.core.verdicts import Result
    from continuity_conformance.fuzz.sequence.corpus import Corpus, SavedFinding
    from continuity_spec import Requirement

_AREA: Final = "CONTRACT"
_FOUND: Final = 1
_INTERRUPTED: Final = 130
_MINUTE: Final = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target(parser)
    parser.add_argument(
        "--minutes", type=float, default=10.0, metavar="M", help="after how long no round is begun (default: 10)"
    )
    parser.add_argument(
        "--seed", type=int, metavar="S", help="the seed of the first round (default: where the corpus ended, else 1)"
    )
    parser.add_argument(
        "--corpus",
        type=Path,
        default=Path("continuity-corpus"),
        metavar="DIR",
        help="progress and findings; a later run goes on from there (default: %(default)s)",
    )


def fuzz(options: argparse.Namespace) -> int:
    from continuity_conformance.fuzz.sequence.corpus import Corpus  # noqa: PLC0415 - it brings the kit along

    corpus = Corpus(options.corpus, options.seed)
    search = Search(options, corpus)
    try:
        search.known()
        search.rounds(time.monotonic() + options.minutes * _MINUTE)
    except KeyboardInterrupt:
        search.interrupted = True
    search.conclude()
    return _FOUND if search.failing else _INTERRUPTED if search.interrupted else 0


class Search:
    """One call of the command. Every line that it prints is whole, so that it can be followed in a log."""

    def __init__(self, options: argparse.Namespace, corpus: "Corpus") -> None:
        self._options = options
        self._corpus = corpus
        self._started = time.monotonic()
        self.failing: dict[str, SavedFinding] = {}
        self.interrupted = False

    def known(self) -> None:
        """What was found before is played first: it may have been mended."""
        entries = self._corpus.sequences()
        if not entries:
            return
        results, _ = self._play(entries, self._corpus.progress.seed)
        still = [self._corpus.sequence(result.id, self._again()) for result in results if result.failure]
        self.failing |= {finding.file.name: finding for finding in still}
        _say(f"{len(entries)} sequences were found before, {len(still)} of them still fail")

    def rounds(self, until: float) -> None:
        """Whole rounds, one at least. A round is what `continuity check -k CONTRACT --seed S` plays."""
        from continuity_conformance.suite.release import newest  # noqa: PLC0415

        entries = [entry for entry in newest().requirements if entry.area == _AREA and entry.check]
        while True:
            seed, begun = self._corpus.progress.seed, time.monotonic()
            results, requests = self._play(entries, seed)
            self._corpus.save_progress(requests, time.monotonic() - begun)
            self._tell(seed, self._corpus.save_new(results, self._again(), seed))
            if time.monotonic() >= until:
                return

    def conclude(self) -> None:
        progress = self._corpus.progress
        ended = "stopped" if self.interrupted else "done"
        _say(
            f"{ended}: {progress.rounds} rounds and {progress.requests} requests in {self._corpus.folder}, {len(self.failing)} findings"
        )
        for finding in self.failing.values():
            _say(f"  {finding.summary}\n    continuity run {finding.run_arguments}")

    def _again(self) -> str:
        profile = f" --profile {self._options.profile}" if self._options.profile else ""
        return f"--target {self._options.target}{profile}"

    def _tell(self, seed: int, new: "Sequence[SavedFinding]") -> None:
        progress = self._corpus.progress
        seconds = time.monotonic() - self._started
        self.failing |= {finding.file.name: finding for finding in new}
        _say(
            f"{seconds:6.0f} s  seed {seed}  {progress.rounds} rounds  {progress.requests} requests  {len(self.failing)} findings"
        )
        for finding in new:
            _say(f"  found: {finding.summary}\n    {finding.file}")

    def _play(self, entries: "Sequence[Requirement]", seed: int) -> "tuple[list[Result], int]":
        from continuity_conformance.core.budget import Budget  # noqa: PLC0415
        from continuity_conformance.run.session import Run  # noqa: PLC0415

        with Run(
            self._options.target, self._options.profile, entries, Budget(seed=seed, folder=self._corpus.folder)
        ) as run:
            return [run.result(entry.id) for entry in entries], run.requests


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()

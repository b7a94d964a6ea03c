"""`continuity fuzz`: random testing for as long as you like, in rounds with a new seed each. The corpus keeps the findings, and a later call continues from it."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from continuity_conformance.cli.options import add_options, add_target
from continuity_conformance.core.budget import Budget
from continuity_conformance.core.verdicts import Result
from continuity_conformance.fuzz.sequence.corpus import Corpus, SavedFinding
from continuity_conformance.run.session import Run
from continuity_conformance.suite.release import newest
from continuity_conformance.target.resolve import resolve
from continuity_spec import Requirement

_AREA: Final = "CONTRACT"
_FOUND: Final = 1
_INTERRUPTED: Final = 130
_MINUTE: Final = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target(parser)
    add_options(parser, "profile")
    parser.add_argument(
        "--minutes", type=float, default=10.0, metavar="M", help="start no further round after this time (default: 10)"
    )
    parser.add_argument(
        "--seed", type=int, metavar="S", help="the seed of the first round (default: the next one of the corpus, or 1)"
    )
    parser.add_argument(
        "--corpus",
        type=Path,
        default=Path("continuity-corpus"),
        metavar="DIR",
        help="progress and findings; a later call continues from there (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    corpus = Corpus(options.corpus, options.seed)
    search = Search(options, corpus)
    try:
        search.replay()
        search.rounds(time.monotonic() + options.minutes * _MINUTE)
    except KeyboardInterrupt:
        search.interrupted = True
    search.print_summary()
    return _FOUND if search.failing else _INTERRUPTED if search.interrupted else 0


class Search:
    """One call of the command. It prints whole lines, so that its log can be followed."""

    def __init__(self, options: argparse.Namespace, corpus: Corpus) -> None:
        self._options = options
        self._target = resolve(options.target, options.profile)
        self._corpus = corpus
        self._started = time.monotonic()
        self.failing: dict[str, SavedFinding] = {}
        self.interrupted = False

    def replay(self) -> None:
        """Play earlier findings first: they may be fixed."""
        entries = self._corpus.sequences()
        if not entries:
            return
        results, _ = self._play(entries, self._corpus.progress.seed)
        still = [self._corpus.sequence(result.id, self._arguments()) for result in results if result.failure]
        self.failing |= {finding.file.name: finding for finding in still}
        _print(f"{len(entries)} sequences failed before, {len(still)} of them still fail")

    def rounds(self, until: float) -> None:
        """Play whole rounds, at least one. A round is what `continuity check -k CONTRACT --seed S` plays."""
        entries = [entry for entry in newest().requirements if entry.area == _AREA and entry.check]
        while True:
            seed, begun = self._corpus.progress.seed, time.monotonic()
            results, requests = self._play(entries, seed)
            self._corpus.save_progress(requests, time.monotonic() - begun)
            self._print_round(seed, self._corpus.save_new(results, self._arguments(), seed))
            if time.monotonic() >= until:
                return

    def print_summary(self) -> None:
        progress = self._corpus.progress
        ended = "stopped" if self.interrupted else "done"
        _print(
            f"{ended}: {progress.rounds} rounds and {progress.requests} requests in {self._corpus.folder}, {len(self.failing)} findings"
        )
        for finding in self.failing.values():
            _print(f"  {finding.summary}\n    continuity run {finding.run_arguments}")

    def _arguments(self) -> str:
        return self._target.arguments

    def _print_round(self, seed: int, new: Sequence[SavedFinding]) -> None:
        progress = self._corpus.progress
        seconds = time.monotonic() - self._started
        self.failing |= {finding.file.name: finding for finding in new}
        _print(
            f"{seconds:6.0f} s  seed {seed}  {progress.rounds} rounds  {progress.requests} requests  {len(self.failing)} findings"
        )
        for finding in new:
            _print(f"  found: {finding.summary}\n    {finding.file}")

    def _play(self, entries: Sequence[Requirement], seed: int) -> tuple[list[Result], int]:
        with Run(self._target, entries, Budget(seed=seed, folder=self._corpus.folder)) as run:
            return [run.result(entry.id) for entry in entries], run.requests


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()

"""`continuity run`: single requirements, with each failure in full."""

import argparse
import sys
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path

from continuity_conformance.cli.options import add_options, add_target_option, budget_of
from continuity_conformance.core.verdicts import Result, by_review, run_verdict
from continuity_conformance.results import transcript
from continuity_conformance.run.session import Run
from continuity_conformance.suite.release import newest
from continuity_conformance.suite.select import require_unique_ids, select
from continuity_conformance.target.resolve import resolve
from continuity_conformance.terminal.output import warn
from continuity_spec import Level, Requirement, load_requirements


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "ids",
        nargs="+",
        metavar="ID|FILE",
        help="a requirement (DERIVE-04), an area (DERIVE), or a file of requirements, such as a saved sequence",
    )
    add_target_option(parser)
    add_options(parser, "profile", "examples", "seed")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="the whole transcript of every scenario, also of those that pass"
    )


def run(options: argparse.Namespace) -> int:
    results: list[Result] = []
    with closing(_results(options, _named(options.ids))) as decided:
        for result in decided:
            told = transcript.lines(result, whole=options.verbose)
            sys.stdout.writelines(f"{line}\n" for line in (*([""] if results else []), *told))
            sys.stdout.flush()
            results.append(result)
    # Whoever runs a single SHOULD wants to know whether it fails.
    return run_verdict(results, fail_on=Level.SHOULD).exit_code


def _named(words: Sequence[str]) -> list[Requirement]:
    """The requirements that the words name, and all of the files."""
    files = [word for word in words if Path(word).is_file()]
    release = newest()
    warn(release.packs.broken)
    requirements = release.requirements
    named = select([word for word in words if word not in files], requirements)
    from_files = [each for file in files for each in load_requirements(Path(file))]
    return require_unique_ids([*(each for each in requirements if each.id in named), *from_files])


def _results(options: argparse.Namespace, requirements: Sequence[Requirement]) -> Generator[Result, None, None]:
    """The results one after the other, as soon as each is decided."""
    yield from (by_review(each) for each in requirements if each.manual is not None)
    runnable = [each for each in requirements if each.manual is None]
    if not runnable:
        return
    with Run(resolve(options.target, options.profile), runnable, budget_of(options)) as session:
        yield from (session.result(each.id) for each in runnable)

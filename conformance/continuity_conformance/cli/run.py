"""`continuity run`: single requirements, with the whole transcript of each."""

import argparse
import sys
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path

from continuity_conformance.cli.budget import add_budget_arguments, budget_of
from continuity_conformance.cli.target import add_profile
from continuity_conformance.core.verdicts import Result, run_verdict
from continuity_conformance.terminal.output import complain
from continuity_spec import Level, Requirement, load_requirements


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "ids",
        nargs="+",
        metavar="ID|FILE",
        help="a requirement (DERIVE-04), an area (DERIVE), or a file of requirements, such as a sequence that was found",
    )
    parser.add_argument("--target", default="reference", metavar="URL|NAME", help="the server (default: reference)")
    add_profile(parser)
    add_budget_arguments(parser)


def run(options: argparse.Namespace) -> int:
    # Imported here because they bring the whole kit along.
    from continuity_conformance.results import transcript  # noqa: PLC0415

    results: list[Result] = []
    with closing(_decided(options, _wanted(options.ids))) as decided:
        for result in decided:
            sys.stdout.writelines(f"{line}\n" for line in (*([""] if results else []), *transcript.lines(result)))
            sys.stdout.flush()
            results.append(result)
    # A failed SHOULD is what was asked about here, and no side matter.
    return run_verdict(results, fail_on=Level.SHOULD).exit_code


def _wanted(words: Sequence[str]) -> list[Requirement]:
    """The requirements that are named, and those of the files that are."""
    from continuity_conformance.suite.release import newest  # noqa: PLC0415
    from continuity_conformance.suite.select import require_unique_ids, select  # noqa: PLC0415

    files = [word for word in words if Path(word).is_file()]
    release = newest()
    complain(release.packs.broken)
    requirements = release.requirements
    named = select([word for word in words if word not in files], requirements)
    from_files = [each for file in files for each in load_requirements(Path(file))]
    return require_unique_ids([*(each for each in requirements if each.id in named), *from_files])


def _decided(options: argparse.Namespace, requirements: Sequence[Requirement]) -> Generator[Result, None, None]:
    """Give the results one after the other, as soon as each is there."""
    from continuity_conformance.core.verdicts import by_review  # noqa: PLC0415
    from continuity_conformance.run.session import Run  # noqa: PLC0415

    yield from (by_review(each) for each in requirements if each.manual is not None)
    runnable = [each for each in requirements if each.manual is None]
    if not runnable:
        return
    with Run(options.target, options.profile, runnable, budget_of(options)) as session:
        yield from (session.result(each.id) for each in runnable)

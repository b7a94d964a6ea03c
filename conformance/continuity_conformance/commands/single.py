"""`continuity run`: single requirements, with the whole transcript of each."""

import argparse
import sys
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path

from continuity_conformance.verdicts import Result, run_verdict
from continuity_spec import Level, Requirement


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", nargs="+", metavar="ID", help="a requirement (DERIVE-04), or an area (DERIVE)")
    parser.add_argument("--target", default="reference", metavar="URL|NAME", help="the server (default: reference)")
    parser.add_argument("--profile", type=Path, metavar="FILE", help="what the URL alone cannot tell about the target")


def run(options: argparse.Namespace) -> int:
    # Imported here because they bring the whole kit along.
    from continuity_conformance import transcript  # noqa: PLC0415
    from continuity_conformance.release import newest  # noqa: PLC0415
    from continuity_conformance.selection import select  # noqa: PLC0415

    requirements = newest().requirements
    wanted = select(options.ids, requirements)
    results: list[Result] = []
    with closing(_decided(options, [each for each in requirements if each.id in wanted])) as decided:
        for result in decided:
            sys.stdout.writelines(f"{line}\n" for line in (*([""] if results else []), *transcript.lines(result)))
            sys.stdout.flush()
            results.append(result)
    # A failed SHOULD is what was asked about here, and no side matter.
    return run_verdict(results, fail_on=Level.SHOULD).exit_code


def _decided(options: argparse.Namespace, requirements: Sequence[Requirement]) -> Generator[Result, None, None]:
    """Give the results one after the other, as soon as each is there."""
    from continuity_conformance.run import Run  # noqa: PLC0415
    from continuity_conformance.verdicts import by_review  # noqa: PLC0415

    yield from (by_review(each) for each in requirements if each.manual is not None)
    runnable = [each for each in requirements if each.manual is None]
    if not runnable:
        return
    session = Run(options.target, options.profile, runnable)
    try:
        session.open()
        yield from (session.result(each.id) for each in runnable)
    finally:
        session.close()

"""reproduce.sh: for each failure the command that runs it alone, and a curl command where one request shows it.

Text from a server is quoted for the shell, and on one line in comments. Keys come from the environment.
"""

import shlex
from collections.abc import Iterator
from typing import Final

from continuity_conformance.core.budget import DEFAULT_EXAMPLES, DEFAULT_SEED
from continuity_conformance.core.rerun import target_arguments
from continuity_conformance.core.text import cut, one_line
from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.http.curl import one_request
from continuity_conformance.results.one_line import headline
from continuity_conformance.results.recorded import RecordedRequirement, Report, RerunArguments

_COMMENT: Final = 160


def again(requirement_id: str, run: RerunArguments) -> str:
    """The command that runs one requirement against the same target."""
    examples = ["--examples", str(run.examples)] if run.examples not in {None, DEFAULT_EXAMPLES} else []
    seed = ["--seed", str(run.seed)] if run.seed not in {None, DEFAULT_SEED} else []
    return shlex.join(
        ["continuity", "run", requirement_id, *target_arguments(run.target, run.profile), *examples, *seed]
    )


def render(report: Report) -> str:
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    failed = report.with_verdict(Verdict.FAIL)
    yield "#!/bin/sh"
    yield _comment(f"{report.target.name}, {report.started}: {report.verdict.spoken}, {len(failed)} failed.")
    yield "# The kit takes keys from the environment, as the profile names them; curl takes KEY (alice's) and BOB_KEY. Replace *** by the value of that header."
    yield f"TARGET=${{TARGET:-{shlex.quote(report.target.url)}}}"
    for row in failed:
        yield ""
        yield from _failure(row, report)


def _failure(row: RecordedRequirement, report: Report) -> Iterator[str]:
    yield _comment(f"{row.result.id} ({row.result.level}): {row.result.text}")
    yield _comment(headline(row.result))
    yield again(row.result.id, report.again)
    command = _one_request(row, report.target.url)
    if command:
        yield from ("# One request shows it:", command)


def _one_request(row: RecordedRequirement, base: str) -> str | None:
    commands = (
        one_request(each.expectation, each.exchanges, each.interventions or (), base) for each in row.result.shown_by
    )
    return next((command for command in commands if command), None)


def _comment(text: str) -> str:
    return f"# {cut(one_line(text), _COMMENT)}"

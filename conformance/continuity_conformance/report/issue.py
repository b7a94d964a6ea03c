"""An issue for each cause, as Markdown that can be pasted into a tracker. It names no key, path or host of the run."""

import re
from collections.abc import Iterator
from typing import Final

from continuity_conformance.core.cause import Cause
from continuity_conformance.core.text import cut, one_line
from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.http.curl import one_request
from continuity_conformance.report.markdown import code, plain
from continuity_conformance.results import cause_text
from continuity_conformance.results.recorded import RecordedRequirement, Report
from continuity_conformance.results.transcript import entry_lines, in_order

_TITLE: Final = 120
_LINES: Final = 40
_ADDRESS: Final = re.compile(r"https?://[^/\s\"'`]+")
_PATH: Final = re.compile(r"(?<![\w$/.])/(?:home|root|tmp|var|private|Users|opt|srv|mnt|work)/[^\s\"'`,;:)]*")
"""A path of the machine that ran the kit."""


def why_none(report: Report) -> str:
    """Why no issues are written for a run; empty if they can be."""
    if not report.causes:
        return "the run has no causes to report"
    if not report.tells_kinds:
        return "an earlier kit wrote the results, and the causes cannot be told from them: run the suite again"
    if not report.finished:
        return "the run did not finish, so an issue could blame the wrong cause"
    if report.with_verdict(Verdict.ERROR):
        return "something ended in an error of the kit or the set-up: mend that first, an issue could blame the server for it"
    return ""


def file_name(number: int, cause: Cause) -> str:
    return f"{number:02}-{cause.defect or cause.explains[0].lower()}.md"


def render(cause: Cause, report: Report) -> str:
    return _without_addresses("\n".join(_lines(cause, report)) + "\n", report.target.url)


def _without_addresses(text: str, base: str) -> str:
    """The text with `$TARGET` in place of every address, and without paths of a machine."""
    text = text.replace(base, "$TARGET") if base else text
    return _PATH.sub("…", _ADDRESS.sub("$TARGET", text))


def _lines(cause: Cause, report: Report) -> Iterator[str]:
    rows = {row.result.id: row for row in report.rows}
    clearest = rows[cause.evidence[0].id] if cause.evidence else rows[cause.explains[0]]
    yield f"# {plain(cut(one_line(cause_text.title(cause)), _TITLE))}"
    yield from ("", f"{plain(report.target.name)}, Session Continuity {plain(report.release)}, {report.started[:10]}.")
    yield from ("", "## What a user sees", "", plain(clearest.why or clearest.result.text, 2000))
    yield from ("", "## Expected and actual", "")
    yield from (f"- {plain(cause_text.shown(each), 600)}" for each in cause.evidence)
    yield from ("", "## How to reproduce it", "", *_reproduction(clearest, report))
    yield from ("", "## Impact", "", *_impact(cause, rows))
    yield from _elsewhere(cause)


def _reproduction(row: RecordedRequirement, report: Report) -> Iterator[str]:
    shown = row.result.clearest
    yield f"With the conformance kit Session Continuity: {code(f'continuity run {row.result.id} --target $TARGET')}"
    if shown is None:
        return
    steps = next((each.steps for each in row.scenarios if each.name == shown.scenario), ())
    if steps:
        yield from (
            "",
            *(f"{number}. {plain(f'{step.does} {step.expect}'.strip(), 400)}" for number, step in enumerate(steps, 1)),
        )
    command = one_request(shown.expectation, shown.exchanges, shown.interventions or (), report.target.url)
    if command:
        yield from ("", "One request shows it:", "", "```sh", command, "```")
    elif shown.exchanges:
        told = in_order(shown.exchanges, shown.interventions or ())
        lines = [line for each in told for line in entry_lines(each, shown.expected)]
        yield from ("", "On the wire:", "", "```text", *(line.replace("```", "'''") for line in lines[-_LINES:]), "```")


def _impact(cause: Cause, rows: dict[str, RecordedRequirement]) -> Iterator[str]:
    for identity in cause.explains:
        result = rows[identity].result
        yield f"- {identity} ({result.level}, {result.class_name or 'no class'}) fails: {plain(result.text, 400)}"
    if cause.blocks:
        yield f"- could not be tested because of it: {', '.join(cause.blocks)}"


def _elsewhere(cause: Cause) -> Iterator[str]:
    if cause.issue:
        yield from ("", "## The same fault elsewhere", "", plain(cause.issue))
    if cause.defect:
        yield from ("", f"A small server with this fault: {code(f'continuity serve --defect {cause.defect}')}")

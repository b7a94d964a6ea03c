"""What the page shows of a run: the verdict with its causes, a requirement with its dialogue, and what changed since another run.

All markup is made here, from templates that escape; the page's script only puts it in its place.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import jinja2

from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.report import compare, html, issue
from continuity_conformance.report.files import FILES
from continuity_conformance.report.page import MARKS, environment
from continuity_conformance.results import cause_text
from continuity_conformance.results.read import read
from continuity_conformance.results.recorded import Report
from continuity_conformance.results.tally import NOT_SELECTED
from continuity_conformance.suite.packs import whole_spec
from continuity_conformance.ui.commands import RESULTS
from continuity_conformance.ui.history import EarlierRun, RunHistory
from continuity_spec import Requirement, load_spec
from continuity_spec.render.arrows import elements, elements_of_always
from continuity_spec.render.diagram import UNICODE, draw

_PAGE: Final = Path(__file__).parent / "files"
_KINDS: Final = {"broke": "broke", "fails now": "fails now", "lost": "no longer decided", "better": "better"}


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed since the run before: ids by kind, and the causes that are gone or new."""

    before: EarlierRun
    kinds: dict[str, list[str]]
    fixed: tuple[str, ...]
    new: tuple[str, ...]


def start_page(target: str, profile: str) -> str:
    """The page itself, with what the command line gave."""
    return _template("index.html.j2").render(target=target, profile=profile, classes=load_spec().classes)


def summary(run: str, history: RunHistory) -> str:
    """The end of a run: verdict, causes, what failed, what changed, and the files to download."""
    report = _report(run, history)
    failed = [row for row in report.rows if row.result.verdict in {Verdict.FAIL, Verdict.ERROR}]
    return _template("summary.html.j2").render(
        run=run,
        report=report,
        failed=failed,
        failures=len(report.with_verdict(Verdict.FAIL)),
        causes=cause_text,
        headline=html.head_line,
        changes=_changes(run, history, report),
        downloads=[*FILES, RESULTS],
        why_no_issue=issue.why_none(report),
    )


def requirement(run: str, identity: str, history: RunHistory) -> str | None:
    """What a run found about a requirement, and the dialogue that the spec asks for; None if there is none of this id."""
    report = _report(run, history)
    row = next((each for each in report.rows if each.result.id == identity), None)
    entry = next((each for each in whole_spec().requirements if each.id == identity), None)
    if row is None:
        return None
    return _template("requirement.html.j2").render(
        result=row.result,
        mark=MARKS[row.result.verdict],
        headline=html.head_line(row) if row.result.verdict is Verdict.FAIL else row.result.reason,
        body=html.requirement(row, report),
        diagram=_diagram(entry, row.result) if entry is not None else "",
    )


def earlier(history: RunHistory) -> str:
    return _template("earlier.html.j2").render(runs=history.runs())


def comparison(runs: list[str], history: RunHistory) -> str:
    """Two runs side by side, as a page."""
    folders = [history.folder(run) for run in runs]
    paths = [folder / RESULTS for folder in folders if folder is not None]
    return compare.as_html(compare.compare([read(path) for path in paths], [path.parent.name for path in paths]))


def cause_issue(run: str, number: int, history: RunHistory) -> tuple[str, str] | None:
    """The file name and the text of the issue about a cause; None if there is none."""
    report = _report(run, history)
    if issue.why_none(report) or not 1 <= number <= len(report.causes):
        return None
    cause = report.causes[number - 1]
    return issue.file_name(number, cause), issue.render(cause, report)


def _report(run: str, history: RunHistory) -> Report:
    folder = history.folder(run)
    assert folder is not None, "the routes have looked"
    path = folder / RESULTS
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _read(path: Path, _changed: int) -> Report:
    """A run that goes on replaces its file each second, and pages ask for many requirements of it."""
    return read(path)


def _changes(run: str, history: RunHistory, report: Report) -> Changes | None:
    before = history.before(run)
    if before is None:
        return None
    compared = compare.compare([_report(before.id, history), report], [before.id, run])
    not_asked = {result.id for each in compared.runs for result in each.report.results if result.reason == NOT_SELECTED}
    changes = [each for _, _, step in compared.steps() for each in step if each.id not in not_asked]
    kinds = {label: [each.id for each in changes if each.kind == kind] for kind, label in _KINDS.items()}
    (causes,) = (each for _, _, each in compared.causes())
    return Changes(before, {label: ids for label, ids in kinds.items() if ids}, causes.fixed, causes.new)


def _diagram(entry: Requirement, result: Result) -> str:
    """The dialogue as the spec draws it: of the scenario that failed, else of the first."""
    if entry.always is not None:
        return "\n".join(draw(elements_of_always(entry.always), UNICODE))
    failed = {each.scenario for each in result.shown_by}
    chosen = [each for each in entry.scenarios if each.name in failed] or list(entry.scenarios)
    return "\n".join(draw(elements(chosen[0]), UNICODE)) if chosen else ""


def _template(name: str) -> jinja2.Template:
    return environment(_PAGE).get_template(name)

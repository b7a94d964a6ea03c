"""Compare runs, and list what changed from each run to the next.

A regression is a requirement that passed before and does not pass now: it *broke* (it fails, or ended in an error of the kit), or it is *lost* (not tested, not
applicable, or not in the run).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from continuity_conformance.core.cause import Cause
from continuity_conformance.core.text import WIDTH, cut, one_line, wrapped
from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.report.markdown import code, plain, table
from continuity_conformance.report.page import MARKS, page
from continuity_conformance.results.cause_text import title
from continuity_conformance.results.recorded import Report
from continuity_conformance.results.tally import HEADS, Tally, total

_FAILING = frozenset({Verdict.FAIL, Verdict.ERROR})
_MISSING = "·"
_NAME = 40


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run, and the unique name of its column."""

    name: str
    report: Report

    @property
    def tally(self) -> Tally:
        return total(self.report.results)

    def result(self, requirement_id: str) -> Result | None:
        return next((result for result in self.report.results if result.id == requirement_id), None)


@dataclass(frozen=True, slots=True)
class ComparedClass:
    """A class and its verdict in each run, in a few words. An empty text: the run does not have the class."""

    name: str
    summaries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A requirement whose verdict changed. None: the run does not have the requirement."""

    id: str
    text: str
    before: Verdict | None
    after: Verdict | None

    @property
    def kind(self) -> str:
        if self.before is Verdict.PASS:
            return "broke" if self.after in _FAILING else "lost"
        if self.after is Verdict.PASS:
            return "better"
        return "fails now" if self.after in _FAILING else "changed"

    @property
    def transition(self) -> str:
        return f"{_spoken(self.before)} → {_spoken(self.after)}"


KINDS = ("broke", "lost", "fails now", "better", "changed")
_REGRESSIONS = ("broke", "lost")


@dataclass(frozen=True, slots=True)
class ComparedRequirement:
    """A requirement and its verdict in each run."""

    id: str
    level: str
    text: str
    verdicts: tuple[Verdict | None, ...]

    @property
    def differs(self) -> bool:
        return len(set(self.verdicts)) > 1


@dataclass(frozen=True, slots=True)
class CauseChanges:
    """The known defects that one run shows and the next does not, and the reverse, each with its title."""

    fixed: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    runs: tuple[ComparedRun, ...]
    lines: tuple[ComparedRequirement, ...]

    @property
    def classes(self) -> list[ComparedClass]:
        """The classes of all runs, in the order of the newest."""
        found = [{each.name: each.summary for each in run.report.classes} for run in self.runs]
        names = dict.fromkeys(name for each in reversed(found) for name in each)
        return [ComparedClass(name, tuple(each.get(name, "") for each in found)) for name in names]

    def steps(self) -> Iterator[tuple[ComparedRun, ComparedRun, list[Change]]]:
        """Each run, the next run, and the changes between them, regressions first."""
        for position, (before, after) in enumerate(pairwise(self.runs)):
            changes = [Change(line.id, line.text, *line.verdicts[position : position + 2]) for line in self.lines]
            changed = [change for change in changes if change.before is not change.after]
            yield before, after, sorted(changed, key=lambda change: KINDS.index(change.kind))

    def causes(self) -> Iterator[tuple[ComparedRun, ComparedRun, CauseChanges]]:
        """Each run, the next run, and the causes that are gone or new in it."""
        for before, after in pairwise(self.runs):
            if not (before.report.tells_kinds and after.report.tells_kinds):
                yield before, after, CauseChanges((), ())
                continue
            old, new = ({_same(cause): title(cause) for cause in run.report.causes} for run in (before, after))
            fixed = tuple(text for key, text in old.items() if key not in new)
            yield before, after, CauseChanges(fixed, tuple(text for key, text in new.items() if key not in old))

    @property
    def regressed(self) -> bool:
        return any(change.kind in _REGRESSIONS for _, _, changes in self.steps() for change in changes)


def _same(cause: Cause) -> object:
    """What makes two causes of different runs the same one: the defect, or what fails where no defect is known."""
    return cause.defect or cause.explains


def compare(reports: Sequence[Report], places: Sequence[str]) -> Comparison:
    """Compare these runs. `places` distinguish runs of the same target."""
    names = [report.target.name for report in reports]
    runs = [
        ComparedRun(cut(one_line(name if names.count(name) == 1 else f"{name} ({place})"), _NAME), report)
        for name, place, report in zip(names, places, reports, strict=True)
    ]
    # Order and text of the newest run; requirements that only older runs have come last.
    ids = dict.fromkeys(result.id for report in reversed(reports) for result in report.results)
    latest = {result.id: result for report in reports for result in report.results}
    return Comparison(tuple(runs), tuple(_line(latest[each], runs) for each in ids))


def _line(result: Result, runs: Sequence[ComparedRun]) -> ComparedRequirement:
    results = [run.result(result.id) for run in runs]
    verdicts = tuple(each.verdict if each is not None else None for each in results)
    return ComparedRequirement(result.id, result.level.value, result.text, verdicts)


def _spoken(verdict: Verdict | None) -> str:
    return verdict.spoken if verdict is not None else "missing"


def _mark(verdict: Verdict | None) -> str:
    return MARKS[verdict] if verdict is not None else _MISSING


def as_text(comparison: Comparison) -> str:
    return "\n".join(cut(line, WIDTH) for line in _text_lines(comparison)) + "\n"


def _text_lines(comparison: Comparison) -> Iterator[str]:
    for number, run in enumerate(comparison.runs, 1):
        yield f"{number}  {run.name}: {run.report.verdict.spoken}"
        yield f"   {', '.join(f'{run.tally.counts[verdict]} {HEADS[verdict]}' for verdict in HEADS)}"
    yield ""
    for each in comparison.classes:
        yield f"{each.name:12} {' → '.join(summary or _MISSING for summary in each.summaries)}"
    for before, after, causes in comparison.causes():
        yield from (line for text in causes.fixed for line in wrapped(f"fixed since {before.name}: {text}", "  "))
        yield from (line for text in causes.new for line in wrapped(f"new in {after.name}: {text}", "  "))
    for before, after, changes in comparison.steps():
        yield from ("", f"from {before.name} to {after.name}:", *([] if changes else ["  nothing changed"]))
        yield from (f"  {change.kind:9}  {change.id:11}  {change.transition}" for change in changes)
    differing = [line for line in comparison.lines if line.differs]
    same = len(comparison.lines) - len(differing)
    yield from ("", f"{same} of {len(comparison.lines)} requirements have the same verdict in all runs.")
    if differing:
        yield from ("", " " * 13 + "  ".join(str(number) for number, _ in enumerate(comparison.runs, 1)))
        for line in differing:
            yield f"{line.id:11}  {'  '.join(_mark(verdict) for verdict in line.verdicts)}  {line.text}"
        yield f"({', '.join(f'{MARKS[verdict]} {HEADS[verdict]}' for verdict in HEADS)}, {_MISSING} missing)"


def as_markdown(comparison: Comparison) -> str:
    return "\n".join(_markdown_lines(comparison)) + "\n"


def _markdown_lines(comparison: Comparison) -> Iterator[str]:
    yield from ("# Session Continuity: comparison", "")
    heads = ("run", "verdict", *(HEADS[verdict] for verdict in HEADS))
    yield from table(
        heads,
        (
            (code(run.name), run.report.verdict.spoken, *(run.tally.counts[verdict] for verdict in HEADS))
            for run in comparison.runs
        ),
    )
    yield ""
    yield from table(
        ("class", *(code(run.name) for run in comparison.runs)),
        ((plain(each.name), *(summary or _MISSING for summary in each.summaries)) for each in comparison.classes),
    )
    for before, after, causes in comparison.causes():
        if causes.fixed or causes.new:
            yield ""
        yield from (f"- fixed since {code(before.name)}: {plain(text)}" for text in causes.fixed)
        yield from (f"- **new in** {code(after.name)}: {plain(text)}" for text in causes.new)
    for before, after, changes in comparison.steps():
        yield from ("", f"## From {code(before.name)} to {code(after.name)}", "")
        if not changes:
            yield "Nothing changed."
            continue
        yield from table(
            ("", "requirement", "verdict"),
            ((f"**{each.kind}**", f"{each.id} {plain(each.text)}", each.transition) for each in changes),
        )
    yield from ("", "## All requirements", "")
    yield from table(
        ("requirement", "level", *(code(run.name) for run in comparison.runs)),
        (
            (f"{line.id} {plain(line.text)}", line.level, *(_cell(verdict) for verdict in line.verdicts))
            for line in comparison.lines
        ),
    )


def _cell(verdict: Verdict | None) -> str:
    return f"{_mark(verdict)} {_spoken(verdict)}"


def as_html(comparison: Comparison) -> str:
    return page(
        "compare.html.j2",
        None,
        comparison=comparison,
        steps=list(comparison.steps()),
        causes=list(comparison.causes()),
        heads=HEADS,
        cell=_cell,
        regressions=_REGRESSIONS,
    )

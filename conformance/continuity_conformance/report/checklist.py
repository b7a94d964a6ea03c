"""The checklist: what an implementer builds and a reviewer asks, by class, in the order in which it is easiest to build.

Made from the bundled spec, every box is empty. Made from results, the boxes of the requirements that passed are ticked; a run never ticks a requirement that a
person must answer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from continuity_conformance.core.text import cut, one_line
from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.report.markdown import code, plain
from continuity_conformance.report.page import page
from continuity_conformance.results.classes import class_of, easiest_first
from continuity_conformance.results.describe import build, checked, pitfalls, question
from continuity_conformance.results.one_line import headline
from continuity_conformance.results.recorded import Report
from continuity_spec import Level, Requirement, load_spec

_RESULT = 300
_NO_CLASS = "no class"


@dataclass(frozen=True, slots=True)
class ChecklistItem:
    """One requirement. `verdict` is None without a run; `summary` is one line about a verdict other than pass."""

    id: str
    class_name: str
    level: Level
    question: str
    checked: str
    build: tuple[str, ...]
    why: str
    pitfalls: tuple[str, ...]
    manual: bool
    verdict: Verdict | None = None
    summary: str = ""

    @property
    def ticked(self) -> bool:
        return self.verdict is Verdict.PASS and not self.manual


@dataclass(frozen=True, slots=True)
class Checklist:
    title: str
    items: tuple[ChecklistItem, ...]

    @property
    def progress(self) -> str:
        """How many boxes are ticked, and how many a person must answer."""
        manual = sum(item.manual for item in self.items)
        ticked = sum(item.ticked for item in self.items)
        return f"{ticked} of {len(self.items)} ticked; {manual} are answered by a person."

    def groups(self) -> Iterator[tuple[str, list[tuple[str, list[ChecklistItem]]]]]:
        """By class and level, the easiest class first, the binding levels first."""
        for name, members in groupby(easiest_first(self.items), key=lambda item: item.class_name):
            ranked = sorted(members, key=lambda item: list(Level).index(item.level))
            yield name, [(level.value, list(rows)) for level, rows in groupby(ranked, key=lambda item: item.level)]


def from_spec(requirements: Sequence[Requirement], release: str) -> Checklist:
    items = (
        ChecklistItem(
            each.id,
            class_of(each) or _NO_CLASS,
            each.level,
            question(each),
            checked(each),
            tuple(build(each)),
            each.why,
            tuple(pitfalls(each)),
            each.manual is not None,
        )
        for each in requirements
    )
    return Checklist(f"Session Continuity {release}: checklist", tuple(items))


def from_report(report: Report) -> Checklist:
    items = (
        ChecklistItem(
            row.result.id,
            class_of(row.result) or _NO_CLASS,
            row.result.level,
            row.question,
            row.checked,
            row.build,
            row.why,
            row.pitfalls,
            row.manual,
            row.result.verdict,
            "" if row.result.verdict is Verdict.PASS else cut(one_line(headline(row.result)), _RESULT),
        )
        for row in report.rows
    )
    return Checklist(f"Session Continuity {report.release}: checklist of {report.target.name}", tuple(items))


def as_markdown(checklist: Checklist) -> str:
    return "\n".join(_lines(checklist)) + "\n"


def as_html(checklist: Checklist) -> str:
    return page("checklist.html.j2", None, checklist=checklist)


def _lines(checklist: Checklist) -> Iterator[str]:
    yield from (f"# {plain(checklist.title)}", "", checklist.progress)
    claims = {each.name: each.claim for each in load_spec().classes}
    for name, levels in checklist.groups():
        yield from ("", f"## {plain(name)}")
        yield from ("", claims[name]) if name in claims else ()
        for level, items in levels:
            yield from ("", f"### {plain(name)}: {level}", "")
            for item in items:
                yield from _item(item)


def _item(item: ChecklistItem) -> Iterator[str]:
    yield f"- [{'x' if item.ticked else ' '}] **{item.id}** {plain(item.question, 1000)}"
    if item.verdict is not None and not item.ticked and not item.manual:
        yield f"  - *result*: **{item.verdict.spoken}** {code(item.summary)}"
    yield f"  - *checked*: {plain(item.checked, 1000)}"
    if item.build:
        yield f"  - *build*: {plain('; '.join(item.build), 1000)}"
    yield f"  - *pitfalls*: {plain(' '.join((item.why, *item.pitfalls)), 2000)}"

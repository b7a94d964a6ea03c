"""Render the findings as text of 80 columns without colour, or as JSON."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from continuity_conformance.core.text import wrapped
from continuity_conformance.doctor.dry_run import PlannedRequest
from continuity_conformance.doctor.findings import Findings, Topic
from continuity_conformance.results.classes import class_of
from continuity_conformance.run.applicability import Prospect
from continuity_spec import Requirement, load_spec

_TOPIC_WIDTH: Final = 10
_MAX_IDS: Final = 5
_NO_CLASS: Final = "no class"
_HEADS: Final = {
    Prospect.TESTABLE: "testable",
    Prospect.REFUTABLE: "can only fail",
    Prospect.NOT_TESTED: "not tested",
    Prospect.NOT_APPLICABLE: "not applicable",
    Prospect.BY_REVIEW: "by review",
}


def lines(findings: Findings) -> Iterator[str]:
    last = ""
    for topic, sentence in sorted(findings.sentences, key=lambda each: list(Topic).index(each[0])):
        yield from _wrap("" if topic == last else topic.value, sentence)
        last = topic.value
    if findings.left:
        yield from _wrap("", ", ".join(findings.left))
    if findings.prospects:
        yield from _prospects(findings)
    yield ""
    yield f"{findings.requests} requests in {findings.seconds:.1f} s"


def _prospects(findings: Findings) -> Iterator[str]:
    yield from ("", "What a run with these settings can decide:", "")
    yield from _table(findings, lambda each: class_of(each) or _NO_CLASS)
    if findings.missing:
        yield from ("", "What is missing to test more:")
    for reason, ids in findings.missing.items():
        more = f", … ({len(ids)})" if len(ids) > _MAX_IDS else ""
        yield from wrapped(f"  {reason}", "  ")
        yield f"      {', '.join(ids[:_MAX_IDS])}{more}"


def _table(findings: Findings, group: Callable[[Requirement], str]) -> Iterator[str]:
    yield "  ".join((f"{'':11}", *_HEADS.values()))
    rows: dict[str, Counter[Prospect]] = {}
    for requirement, prospect, _ in findings.prospects:
        rows.setdefault(group(requirement), Counter())[prospect] += 1
    rows = dict(sorted(rows.items(), key=lambda row: _rank(row[0])))
    rows["total"] = sum(rows.values(), Counter())
    for name, counts in rows.items():
        yield "  ".join((f"{name:11}", *(f"{counts[prospect]:{len(head)}}" for prospect, head in _HEADS.items())))


def _rank(name: str) -> int:
    """Sort classes in the order of the spec, then packs, and "no class" last."""
    names = [each.name for each in load_spec().classes]
    return names.index(name) if name in names else len(names) + (name == _NO_CLASS)


def _wrap(topic: str, sentence: str) -> Iterator[str]:
    yield from wrapped(f"{topic:{_TOPIC_WIDTH}}{sentence}", " " * _TOPIC_WIDTH)


def as_json(findings: Findings) -> dict[str, object]:
    target = findings.target
    return {
        "url": findings.url,
        "exit_code": findings.exit_code,
        "error": str(findings.error) if findings.error is not None else None,
        "said": [{"topic": topic.value, "text": sentence} for topic, sentence in findings.sentences],
        "header": target.header if target is not None and findings.header_from else None,
        "options": dict(target.options) if target is not None else {},
        "offers": sorted(target.offers) if target is not None else [],
        "declared": findings.declared,
        "observed": target.observed if target is not None else None,
        "controls": [
            {"name": each.name, "by": each.by or None, "way": each.way, "untested": list(each.untested)}
            for each in findings.controls
        ],
        "requirements": [
            {"id": each.id, "area": each.area, "class": class_of(each), "prospect": prospect.value, "reason": reason}
            for each, prospect, reason in findings.prospects
        ],
        "requests": findings.requests,
        "seconds": round(findings.seconds, 3),
        "left_behind": findings.left,
    }


def plan_lines(plan: Sequence[PlannedRequest]) -> Iterator[str]:
    """Every request of a dry run as it would be sent."""
    for number, (request, times) in enumerate(((each.request, each.times) for each in plan), 1):
        yield f"{number:3}  {request.method} {request.url}{f'   (up to {times} times)' if times > 1 else ''}"
        yield from (f"     {name}: {value}" for name, value in request.fields.items())
        yield from [f"     {request.data.decode()}"] if request.data is not None else []

"""report.md: the report for a pull-request comment and for the step summary of a CI.

Text from a server is inside backticks that it cannot close, or has every sign of Markdown escaped. Long lists are cut, with a note: GitHub refuses a comment of
more than 65,536 characters.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from continuity_conformance.core.text import cut, one_line
from continuity_conformance.core.verdicts import RunVerdict, Verdict
from continuity_conformance.report.page import MARKS
from continuity_conformance.report.reproduce import again
from continuity_conformance.results import cause_text
from continuity_conformance.results.one_line import headline
from continuity_conformance.results.recorded import RecordedClass, RecordedRequirement, Report
from continuity_conformance.results.tally import HEADS, Tally, by_played_area, columns, total

_SIGNS: Final = re.compile(r"([\\`*_\[\]<>|~$&]|:(?=//)|(?<=www)\.)")
_MENTION: Final = re.compile(r"([@#])(?=\w)")
_TICKS: Final = re.compile(r"`+")
_LINE: Final = 300
_COMMENT: Final = 65_000
_ROWS: Final = (60, 30, 15, 5)
"""Row limits of the lists: the largest with which the whole text fits is used."""
_SIGN_OF: Final[dict[RunVerdict, str]] = {
    RunVerdict.CONFORMANT: "✅",
    RunVerdict.NOT_CONFORMANT: "❌",
    RunVerdict.INCOMPLETE: "🟡",
    RunVerdict.UNREACHABLE: "⚠️",
    RunVerdict.ERROR: "⚠️",
}


def plain(text: str, length: int = _LINE) -> str:
    """Text without any meaning in Markdown or HTML: no link, no cell border, no tag. GitHub finds mentions even after a backslash."""
    return _MENTION.sub("\\1\u200b", _SIGNS.sub(r"\\\1", cut(one_line(text), length)))


def code(text: str, length: int = _LINE) -> str:
    """Text as inline code, also in a table. The fence is longer than any run of backticks in the text."""
    line = cut(one_line(text), length).replace("|", "¦") or " "
    fence = "`" * (max((len(ticks) for ticks in _TICKS.findall(line)), default=0) + 1)
    pad = " " if len(fence) > 1 else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join('---' for _ in heads)}|"
    yield from (f"| {' | '.join(str(cell) for cell in row)} |" for row in rows)


def render(report: Report) -> str:
    forms = ("\n".join(_lines(report, rows)) + "\n" for rows in _ROWS)
    return next((text for text in forms if len(text) <= _COMMENT), "\n".join(_verdict(report)) + "\n")


def _lines(report: Report, rows: int) -> Iterator[str]:
    yield from _verdict(report)
    yield from _causes(report, rows)
    yield from _failures("Failed", report.failed, report, rows)
    yield from _failures("Known failures", report.accepted, report, rows)
    yield from _failures("Warned", report.warned, report, rows)
    yield from _reasons("Errors of the kit or the set-up", report.with_verdict(Verdict.ERROR), rows)
    yield from _reasons("Not tested", report.with_verdict(Verdict.NOT_TESTED), rows)
    yield from _reasons("Not applicable", report.with_verdict(Verdict.NOT_APPLICABLE), rows)


def _verdict(report: Report) -> Iterator[str]:
    yield f"## {_SIGN_OF[report.verdict]} {report.verdict.spoken}: {plain(report.target.name)}"
    yield ""
    yield f"Session Continuity {plain(report.release)}, {report.started}, {report.seconds:.1f} s, {plain(str(report.kit))}."
    reasons = "; ".join(plain(reason) for reason in report.gate.reasons)
    state = "open" if report.gate.passed else "closed"
    yield f"Gate {state} (exit code {report.gate.exit_code}){f': {reasons}' if reasons else ''}."
    if not report.finished:
        yield "**The run did not finish: these are the verdicts until then.**"
    yield ""
    yield from table(("class", "verdict"), ((plain(each.name), class_summary(each)) for each in report.classes))
    yield ""
    yield from numbers(by_played_area(report.results), total(report.results), columns(report.results))


def class_summary(each: RecordedClass) -> str:
    return f"{each.summary}{'' if each.decides else ' (does not decide)'}"


def numbers(tallies: Sequence[Tally], whole: Tally, shown: Sequence[Verdict]) -> Iterator[str]:
    yield "|  | " + " | ".join(HEADS[verdict] for verdict in shown) + " |"
    yield "|---|" + "---:|" * len(shown)
    for tally in tallies:
        yield f"| {plain(tally.name)} | " + " | ".join(str(tally.counts[verdict]) for verdict in shown) + " |"
    yield "| **total** | " + " | ".join(f"**{whole.counts[verdict]}**" for verdict in shown) + " |"


def _causes(report: Report, shown: int) -> Iterator[str]:
    if not report.causes:
        return
    failures = len(report.with_verdict(Verdict.FAIL))
    yield from ("", f"### {cause_text.heading(report.causes, failures)}", "")
    for number, cause in enumerate(report.causes[:shown], 1):
        yield f"{number}. **{plain(cause_text.title(cause))}**  "
        yield f"   {plain(cause_text.effect(cause))}. {plain(cause_text.standing(cause))}.  "
        yield from (f"   {plain(cause_text.shown(each), 500)}" for each in cause.evidence[:1])


def _failures(title: str, rows: Sequence[RecordedRequirement], report: Report, shown: int) -> Iterator[str]:
    if not rows:
        return
    yield from ("", f"### {title} ({len(rows)})", "")
    yield from table(
        ("", "requirement", "what is wrong"),
        ((MARKS[row.result.verdict], _named(row), _wrong(row)) for row in rows[:shown]),
    )
    if rows[shown:]:
        yield from ("", f"{len(rows) - shown} more are in report.html and results.json.")
    yield from ("", f"Run one again: {code(again(rows[0].result.id, report.again))}")


def _named(row: RecordedRequirement) -> str:
    return f"**{row.result.id}** ({row.result.level.value}) {plain(row.result.text)}"


def _wrong(row: RecordedRequirement) -> str:
    known = f"<br>known until {plain(row.known.until)}: {plain(row.known.reason)}" if row.known else ""
    return code(headline(row.result)) + known


def _reasons(title: str, rows: Sequence[RecordedRequirement], shown: int) -> Iterator[str]:
    """One line for each reason: forty requirements that need the same control have one remedy."""
    groups: dict[str, list[str]] = {}
    for row in rows:
        groups.setdefault(one_line(row.result.reason), []).append(row.result.id)
    if groups:
        yield from ("", "<details>", f"<summary>{title} ({len(rows)})</summary>", "")
        yield from (f"- {code(reason)}: {', '.join(ids)}" for reason, ids in list(groups.items())[:shown])
        yield from [f"- {len(groups) - shown} more reasons are in results.json."] if len(groups) > shown else []
        yield from ("", "</details>")

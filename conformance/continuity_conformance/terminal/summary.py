"""The end of the terminal output: the verdict, the gate, the counts, what failed, and what was not tested and why.

Plain text of at most 80 columns. The counts of all areas add up to the release. On a terminal it fits on the screen: lists are shortened, beginning with
the last one; the verdict is always complete.
"""

import shlex
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from continuity_conformance.core.budget import Budget
from continuity_conformance.core.rerun import target_arguments
from continuity_conformance.core.text import WIDTH, cut, wrapped
from continuity_conformance.core.verdicts import Result, RunVerdict, Verdict
from continuity_conformance.results import tally
from continuity_conformance.results.cause_text import heading
from continuity_conformance.results.classes import easiest_first
from continuity_conformance.results.ledger import RunOutcome
from continuity_conformance.results.one_line import headline
from continuity_conformance.terminal.causes import cause_lines, cause_titles

_INDENT: Final = " " * 9
_ROOM_FOR_FAILURES: Final = 8
_LONGEST: Final = 600
_LABELS: Final = {
    RunVerdict.CONFORMANT: "conformant",
    RunVerdict.NOT_CONFORMANT: "NOT conformant",
    RunVerdict.INCOMPLETE: "incomplete",
    RunVerdict.UNREACHABLE: "unreachable",
    RunVerdict.ERROR: "error (of the kit or the set-up)",
}


@dataclass(frozen=True, slots=True)
class Section:
    """A list of the summary. `size` is the number of its entries; `lines` may be more or fewer.

    `why`: what one line says about them, the most important first: their reasons with numbers, or their ids. `short`: a line for each entry.
    """

    title: str
    size: int
    lines: tuple[str, ...]
    why: tuple[str, ...] = ()
    short: tuple[str, ...] = ()

    def whole(self) -> list[str]:
        return ["", f"{self.title}:", *self.lines] if self.size else []

    def brief(self) -> list[str]:
        """One line: the number, and as many of the reasons as it has room for."""
        if not self.size:
            return []
        head = f"{self.title}: {self.size}"
        for shown in range(len(self.why), 0, -1):
            more = "; …" if shown < len(self.why) else ""
            line = f"{head} ({'; '.join(self.why[:shown])}{more})"
            if len(line) <= WIDTH:
                return [line]
        return [f"{head} ({self.why[0]}"[: WIDTH - 2] + "…)"] if self.why else [head]

    def cut(self, room: int) -> list[str]:
        """As many lines as there is room for, and the number of the others."""
        kept = max(room - 3, 1)
        if len(self.lines) <= kept + 1:
            return self.whole()
        lines = self.short or self.lines
        if len(lines) <= kept + 1:
            return ["", f"{self.title}:", *lines]
        return ["", f"{self.title}:", *lines[:kept], f"  … and {len(lines) - kept} more"]


def lines(
    outcome: RunOutcome, report: Path | None, height: int | None = None, without: frozenset[str] = frozenset()
) -> list[str]:
    """The whole summary, or what fits into `height` lines. `without`: the titles of lists to leave out."""
    limit = sys.maxsize if height is None else height
    verdict, table = list(_verdict(outcome)), ["", *_table(outcome.results)]
    found = [each for each in sections(outcome, whole=height is None) if each.size and each.title not in without]
    first, *others = found or [Section("", 0, ())]
    tail = list(_what_next(outcome, report))
    for whole in range(len(others), -1, -1):
        lists = [*_all(each.whole() for each in others[:whole]), *_all(each.brief() for each in others[whole:])]
        shown = [*verdict, *table, *first.whole(), *lists, *tail]
        if len(shown) <= limit:
            return shown
    lists = _all(each.brief() for each in others)
    room = limit - len(verdict) - len(lists) - len(tail)
    for make in (_short_table, _total):
        if room - len(table) < _ROOM_FOR_FAILURES:
            table = ["", *make(outcome.results)]
    return [*verdict, *table, *first.cut(room - len(table)), *lists, *tail]


def _all(lists: Iterable[list[str]]) -> list[str]:
    return [line for each in lists for line in each]


def sections(outcome: RunOutcome, *, whole: bool = True) -> tuple[Section, ...]:
    """The lists, the most important one first. `whole`: nothing in them is cut to the width of a screen."""
    gate = outcome.gate
    known = {result.id: entry for result, entry in gate.known}
    accepted, gaps = (
        tuple(_cut(f"  {result.id:11} until {entry.until}  {entry.reason}") for result, entry in pairs)
        for pairs in (gate.known, gate.gaps)
    )
    failed = [each for each in _with(outcome, Verdict.FAIL) if each.id not in known and each not in gate.warned]
    return (
        _causes(outcome, whole=whole),
        _one_each("failed", easiest_first(failed), whole=whole),
        _one_each("error", _with(outcome, Verdict.ERROR), whole=whole),
        Section("known failures", len(accepted), accepted),
        Section("known gaps", len(gaps), gaps),
        _one_each("warned", gate.warned, whole=whole),
        _grouped("not tested", _with(outcome, Verdict.NOT_TESTED)),
        _grouped("not applicable", _with(outcome, Verdict.NOT_APPLICABLE)),
    )


def _verdict(outcome: RunOutcome) -> Iterator[str]:
    verdict = f"{_LABELS[outcome.verdict]}{_claimed(outcome)}{_because(outcome)}"
    yield from wrapped(f"verdict: {verdict}   {outcome.target.name}", _INDENT)
    yield from _gate(outcome)
    yield from _classes(outcome)
    if not outcome.finished and outcome.verdict not in {RunVerdict.ERROR, RunVerdict.UNREACHABLE}:
        yield "stopped: not everything that was selected was decided"
    if outcome.target.observed == "nothing":
        yield "note:    what the model saw could not be observed"


def _claimed(outcome: RunOutcome) -> str:
    """The classes that the run was asked for. Of a class that does not apply nothing is claimed."""
    asked = outcome.run_options.classes
    lacking = {each.name for each in outcome.classes if each.verdict is None}
    claimed, others = [name for name in asked if name not in lacking], [name for name in asked if name in lacking]
    aside = f"{', '.join(others)}: not applicable" if others else ""
    return f" in {', '.join(claimed)}" * bool(claimed) + f"{';' if claimed else ' in nothing;'} {aside}" * bool(aside)


def _classes(outcome: RunOutcome) -> Iterator[str]:
    """Each class in a few words. What a run without `--class` does not decide about is marked."""
    aside = [each for each in outcome.classes if not each.decides and each.name not in outcome.run_options.classes]
    shown = [f"{each.name}: {each.summary}" for each in outcome.classes if each not in aside]
    shown += [f"{each.name}: {each.summary} (does not decide)" for each in aside]
    yield from wrapped(f"classes: {'. '.join(shown)}.", _INDENT)


def _because(outcome: RunOutcome) -> str:
    """Why the verdict is not conformant, in numbers."""
    gate = outcome.gate
    accepted = [result for result, _ in gate.known if not result.pack]
    failed = len(accepted) + sum(not result.pack for result in gate.failed)
    gaps = [result for result, _ in gate.gaps if not result.pack]
    untested = len(gaps) + sum(not result.pack for result in gate.untested)
    known = f", {len(accepted)} of them known" if accepted else ""
    counting = outcome.deciding
    reasons = [
        f"{failed} failed{known}" if failed else "",
        f"{untested} that count not tested{f', {len(gaps)} of them known' if gaps else ''}" if untested else "",
        "" if counting <= outcome.selected else f"{len(counting & outcome.selected)} of {len(counting)} selected",
    ]
    joined = "; ".join(reason for reason in reasons if reason)
    return f" ({joined})" if joined else ""


def _gate(outcome: RunOutcome) -> Iterator[str]:
    """Shown only if it accepts something, or differs from the verdict because of a pack."""
    accepts = bool(outcome.baseline.file) or outcome.run_options.accept_untested
    if not accepts and outcome.gate.exit_code == outcome.verdict.exit_code:
        return
    yield f"gate:    {'passed' if outcome.gate.passed else 'FAILED'} (exit code {int(outcome.gate.exit_code)})"
    for reason in outcome.gate.reasons:
        yield from wrapped(f"{_INDENT}{reason}", f"{_INDENT}  ")


def _table(results: Sequence[Result]) -> Iterator[str]:
    columns = tally.columns(results)
    heads = [tally.HEADS[verdict] for verdict in columns]
    yield "  ".join((f"{'':10}", *heads))
    for row in (*tally.by_played_area(results), tally.total(results)):
        numbers = (f"{row.counts[verdict]:{len(head)}}" for verdict, head in zip(columns, heads, strict=True))
        yield "  ".join((f"{row.name:10}", *numbers))


def _short_table(results: Sequence[Result]) -> Iterator[str]:
    """The same numbers in a few lines, for a small screen."""
    columns = tally.columns(results)
    yield "·".join(tally.HEADS[verdict] for verdict in columns)
    rows = (*tally.by_played_area(results), tally.total(results))
    cells = [f"{row.name}\u00a0{'·'.join(str(row.counts[verdict]) for verdict in columns)}" for row in rows]
    yield from (line.replace("\u00a0", " ") for line in textwrap.wrap("   ".join(cells), WIDTH))


def _total(results: Sequence[Result]) -> Iterator[str]:
    """The numbers of the whole release only, for a very small screen."""
    counts = tally.total(results).counts
    yield f"total    {', '.join(f'{counts[verdict]} {tally.HEADS[verdict]}' for verdict in tally.columns(results))}"


def _one_each(title: str, results: Sequence[Result], *, whole: bool) -> Section:
    """One entry for each result: as a paragraph, or cut to one line where room is short."""
    texts = [f"  {result.id:11} {result.level:8}  {cut(headline(result), _LONGEST)}" for result in results]
    lines = [line for text in texts for line in (wrapped(text, _INDENT) if whole else [_cut(text)])]
    return Section(title, len(results), tuple(lines), tuple(result.id for result in results))


def _causes(outcome: RunOutcome, *, whole: bool) -> Section:
    if not outcome.causes:
        return Section("causes", 0, ())
    failures = len(_with(outcome, Verdict.FAIL))
    shown = tuple(cause_lines(outcome.causes, whole=whole))
    short = tuple(_cut(line) for line in cause_titles(outcome.causes))
    return Section(heading(outcome.causes, failures), len(outcome.causes), shown, short=short)


def _grouped(title: str, results: Sequence[Result]) -> Section:
    """One entry for each reason: forty requirements that need the same control need one remedy."""
    groups: dict[str, list[str]] = {}
    for result in results:
        groups.setdefault(" ".join(result.reason.split()) or "no reason given", []).append(result.id)
    frequent = sorted(groups.items(), key=lambda group: -len(group[1]))
    why = tuple(f"{len(ids)} {reason}" for reason, ids in frequent)
    return Section(title, len(results), tuple(_groups(groups.items())), why)


def _groups(groups: Iterable[tuple[str, list[str]]]) -> Iterator[str]:
    for reason, ids in groups:
        if reason == tally.NOT_SELECTED:
            yield f"  {reason}: {len(ids)} of the release"
        else:
            yield from wrapped(f"  {reason}", "  ")
            yield from wrapped(f"      {', '.join(ids)}", "      ")


def _what_next(outcome: RunOutcome, report: Path | None) -> Iterator[str]:
    failed = easiest_first(outcome.gate.failed or _with(outcome, Verdict.FAIL))
    if failed or report:
        yield ""
    if failed:
        options, budget = outcome.run_options, outcome.run_options.budget
        # A target that the kit started is not running any more; its name, or its profile, starts it again.
        target = outcome.target.url if "://" in options.target else options.target
        again = shlex.join(target_arguments(target, str(options.profile) if options.profile else None))
        seed = budget.arguments if budget != Budget() else ""
        yield f"again:   continuity run {failed[0].id} {again}{seed}"
    if report:
        yield f"report:  {report}"


def _with(outcome: RunOutcome, verdict: Verdict) -> list[Result]:
    return [result for result in outcome.results if result.verdict is verdict]


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"

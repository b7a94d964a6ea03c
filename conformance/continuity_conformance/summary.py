"""The end of the terminal output: the verdict, the counts, what failed, and what was not tested and why.

Plain text of at most 80 columns. The counts of all areas add up to the release.
"""

import shlex
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from continuity_conformance.classes import class_verdicts
from continuity_conformance.headline import headline
from continuity_conformance.ledger import NOT_SELECTED, STOPPED, Outcome
from continuity_conformance.verdicts import Result, RunVerdict, Verdict, counts

WIDTH: Final = 80
_COLUMNS: Final = (
    ("passed", Verdict.PASS),
    ("failed", Verdict.FAIL),
    ("not tested", Verdict.NOT_TESTED),
    ("not applicable", Verdict.NOT_APPLICABLE),
    ("error", Verdict.ERROR),
)
_SPOKEN: Final = {
    RunVerdict.CONFORMANT: "conformant",
    RunVerdict.NOT_CONFORMANT: "NOT conformant",
    RunVerdict.INCOMPLETE: "incomplete",
    RunVerdict.UNREACHABLE: "unreachable",
    RunVerdict.ERROR: "error (of the kit or the set-up)",
}


def lines(outcome: Outcome, report: Path | None) -> Iterator[str]:
    yield from _verdict(outcome)
    yield ""
    yield from _table(outcome.results)
    yield from _one_each("failed", [result for result in _with(outcome, Verdict.FAIL) if _gates(outcome, result)])
    yield from _one_each("warned", [result for result in _with(outcome, Verdict.FAIL) if not _gates(outcome, result)])
    yield from _one_each("error", _with(outcome, Verdict.ERROR))
    yield from _grouped("not tested", _with(outcome, Verdict.NOT_TESTED))
    yield from _grouped("not applicable", _with(outcome, Verdict.NOT_APPLICABLE))
    yield from _what_next(outcome, report)


def _verdict(outcome: Outcome) -> Iterator[str]:
    yield from _wrapped(f"verdict: {_SPOKEN[outcome.verdict]}   {outcome.target.name}", "         ")
    classes = class_verdicts(outcome.results, fail_on=outcome.settings.fail_on)
    spoken = [f"{each.name} {_SPOKEN[each.verdict] if each.verdict else 'not applicable'}" for each in classes]
    yield from _wrapped(f"classes: {', '.join(spoken)}", "         ")
    if any(result.reason == STOPPED for result in outcome.results):
        yield "stopped: not everything that was selected was decided"
    if outcome.target.observed == "nothing":
        yield "note:    what the model saw could not be observed"


def _table(results: Sequence[Result]) -> Iterator[str]:
    tally = counts(results)
    columns = [(name, verdict) for name, verdict in _COLUMNS if verdict is not Verdict.ERROR or tally[verdict]]
    areas = list(dict.fromkeys(result.area for result in results))
    yield "  ".join((f"{'':10}", *(name for name, _ in columns)))
    for name, members in [
        *((area, [each for each in results if each.area == area]) for area in areas),
        ("total", results),
    ]:
        numbers = counts(members)
        yield "  ".join((f"{name:10}", *(f"{numbers[verdict]:{len(head)}}" for head, verdict in columns)))


def _one_each(title: str, results: Sequence[Result]) -> Iterator[str]:
    if results:
        yield from ("", f"{title}:")
        yield from (_cut(f"  {result.id:11} {result.level:8}  {headline(result)}") for result in results)


def _grouped(title: str, results: Iterable[Result]) -> Iterator[str]:
    """One entry a reason, because forty requirements that need the same control need one remedy."""
    groups: dict[str, list[str]] = {}
    for result in results:
        groups.setdefault(" ".join(result.reason.split()) or "no reason given", []).append(result.id)
    if groups:
        yield from ("", f"{title}:")
    for reason, ids in groups.items():
        if reason == NOT_SELECTED:
            yield f"  {reason}: {len(ids)} of the release"
        else:
            yield from _wrapped(f"  {reason}", "  ")
            yield from _wrapped(f"      {', '.join(ids)}", "      ")


def _what_next(outcome: Outcome, report: Path | None) -> Iterator[str]:
    failed = _with(outcome, Verdict.FAIL)
    if failed or report:
        yield ""
    if failed:
        profile = f" --profile {shlex.quote(str(outcome.settings.profile))}" if outcome.settings.profile else ""
        # The address of a target that the kit started is gone by now; its name starts it again.
        started = "://" not in outcome.settings.target
        target = shlex.quote(outcome.settings.target if started else outcome.target.url)
        yield f"again:   continuity run {failed[0].id} --target {target}{profile}"
    if report:
        yield f"report:  {report}"


def _with(outcome: Outcome, verdict: Verdict) -> list[Result]:
    return [result for result in outcome.results if result.verdict is verdict]


def _gates(outcome: Outcome, result: Result) -> bool:
    return outcome.settings.gates(result.level)


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"

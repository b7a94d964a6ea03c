"""The result of a campaign as lines for the terminal."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from continuity_conformance.core.text import cut, visible
from continuity_conformance.torture.audit.timeline import TimelineEntry
from continuity_conformance.torture.result import CampaignResult, Reported

_SHOWN: Final = 3
"""Of many violations so many are printed with their timeline; torture.html has more."""
_TEXT: Final = 400


def lines(result: CampaignResult, target: str, files: Sequence[Path]) -> Iterator[str]:
    plan, counts = result.plan, result.counts
    for violation in result.violations[:_SHOWN]:
        yield from ("", *violation_lines(violation))
    more = len(result.violations) - _SHOWN
    yield from ["", f"… and {more} more violations"] if more > 0 else []
    yield f"verdict: {result.verdict}   {result.target}, seed {plan.seed}"
    yield from [f"incomplete: {result.incomplete}"] if result.incomplete else []
    processes = f", {plan.replicas} processes on the same data" if plan.replicas > 1 else ""
    yield f"{result.killed} kills, {result.terminations} SIGTERM, {result.pauses} SIGSTOP in {result.seconds:g} s; {plan.clients} clients{processes}"
    yield from (f"  {count:4} {moment}" for moment, count in sorted(result.kills.items()))
    yield f"{counts.turns} turns: {counts.answered} answered, {counts.unanswered} unanswered, {counts.refused} refused; read back {counts.read_back} times"
    instead = sorted(counts.not_answered_with.items(), key=lambda each: -each[1])
    yield from (f"  {count:4} times {visible(cut(said, _TEXT))}" for said, count in instead)
    yield from (f"not done: {each}" for each in result.not_done)
    if result.not_read_at_the_end:
        yield f"{result.not_read_at_the_end} conversations were not read back at the end, because their responses may have been evicted"
    replicas = f" --replicas {plan.replicas}" if plan.replicas > 1 else ""
    yield f"again: continuity torture {again(target)} --seed {plan.seed} --kills {plan.kills} --clients {plan.clients}{replicas}"
    yield from (f"written: {file}" for file in files)


def again(target: str) -> str:
    """The target as the command takes it."""
    return target.removeprefix("--target ")


def violation_lines(violation: Reported) -> Iterator[str]:
    calm = "without any kill, " if violation.calm else ""
    yield f"{violation.requirement} is not met: {calm}{violation.violation} ({violation.meaning})"
    yield f"  in {violation.conversation}"
    yield from (f"  {entry_line(entry)}" for entry in violation.timeline)


def entry_line(entry: TimelineEntry) -> str:
    sign = "✗" if entry.wrong else " "
    return f"{entry.at:9.3f} s {sign} {entry.lane:9}  {cut(str(visible(entry.says)), _TEXT)}"

"""The gate: whether a run lets a release through.

The verdict is about the target and the release alone. The gate also counts the packs, and does not count what the maintainer accepts: known failures
(`--baseline`) and requirements that could not be tested (single ones in the baseline, or all by `--accept-untested`). Whatever was accepted is listed among the reasons. This module does no I/O.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import IntEnum

from continuity_conformance.core.run_options import RunOptions
from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.results.baseline import Baseline, KnownFailure


class ExitCode(IntEnum):
    """The exit codes of `continuity check` and `pytest --target`. 2 (usage) and 3 (unreachable) come from errors before there are results."""

    OPEN = 0
    FAILED = 1
    ERROR = 4
    INCOMPLETE = 5


@dataclass(frozen=True, slots=True)
class Gate:
    """The decision. Each of the `reasons` is one line: what closes the gate, or what was accepted to open it."""

    exit_code: int
    reasons: tuple[str, ...] = ()
    failed: tuple[Result, ...] = ()
    known: tuple[tuple[Result, KnownFailure], ...] = ()
    gaps: tuple[tuple[Result, KnownFailure], ...] = ()
    """Requirements that could not be tested, and entries of the baseline that accept it."""
    warned: tuple[Result, ...] = ()
    stale: tuple[KnownFailure, ...] = ()
    expired: tuple[KnownFailure, ...] = ()
    untested: tuple[Result, ...] = ()

    @property
    def passed(self) -> bool:
        return self.exit_code == ExitCode.OPEN


@dataclass(frozen=True, slots=True)
class GateInput:
    """The results of a run: each requirement of the release and the packs once.

    `selected`: the ids that the run was asked to decide. `deciding`: the ids that count; the others only warn.
    """

    results: Sequence[Result]
    selected: frozenset[str]
    deciding: frozenset[str]
    finished: bool
    today: date
    broken: tuple[str, ...] = ()
    """Packs that cannot be loaded, one line each. Their requirements were not tested."""

    @property
    def partial(self) -> bool:
        return not self.deciding <= self.selected

    def counts(self, result: Result, run_options: RunOptions) -> bool:
        return result.id in self.deciding and run_options.gates(result.level)


def judge(run: GateInput, run_options: RunOptions, baseline: Baseline) -> Gate:
    """Sort the results and the entries of the baseline, and decide. Entries for requirements that were not selected are ignored."""
    entries = {id_: entry for id_, entry in baseline.entries.items() if id_ in run.selected}
    valid = {id_: entry for id_, entry in entries.items() if not entry.expired(run.today)}
    failures = [result for result in run.results if result.verdict is Verdict.FAIL]
    passed = {result.id for result in run.results if result.verdict is Verdict.PASS}
    accepted = {
        each.id: valid[each.id] for each in run.results if each.id in valid and valid[each.id].covers(each.verdict)
    }
    counting = [result for result in failures if result.id not in accepted]
    untested = [each for each in run.results if each.id in run.selected and _untested(each, run, run_options)]
    gate = Gate(
        ExitCode.OPEN,
        failed=tuple(result for result in counting if run.counts(result, run_options)),
        known=tuple((result, accepted[result.id]) for result in failures if result.id in accepted),
        gaps=tuple((result, accepted[result.id]) for result in untested if result.id in accepted),
        warned=tuple(result for result in counting if not run.counts(result, run_options)),
        stale=tuple(entry for id_, entry in entries.items() if id_ in passed),
        expired=tuple(entry for id_, entry in entries.items() if id_ not in valid and id_ not in passed),
        untested=tuple(each for each in untested if each.id not in accepted),
    )
    return replace(gate, exit_code=_code(gate, run, run_options), reasons=tuple(_reasons(gate, run, run_options)))


def _untested(result: Result, run: GateInput, run_options: RunOptions) -> bool:
    """Whether it counts and has no verdict. A manual requirement never has one: a person answers it."""
    return result.verdict is Verdict.NOT_TESTED and not result.manual and run.counts(result, run_options)


def _code(gate: Gate, run: GateInput, run_options: RunOptions) -> ExitCode:
    """The exit code. `--accept-untested` accepts untested requirements, but neither a stopped run nor a run without a pass."""
    verdicts = {result.verdict for result in run.results}
    if gate.failed or gate.stale or gate.expired:
        return ExitCode.FAILED
    if Verdict.ERROR in verdicts or run.broken:
        return ExitCode.ERROR
    if not run.finished or Verdict.PASS not in verdicts:
        return ExitCode.INCOMPLETE
    incomplete = bool(gate.untested) or run.partial
    return ExitCode.INCOMPLETE if incomplete and not run_options.accept_untested else ExitCode.OPEN


def _reasons(gate: Gate, run: GateInput, run_options: RunOptions) -> Iterable[str]:
    errors = [result for result in run.results if result.verdict is Verdict.ERROR]
    accepted = "accepted: " if run_options.accept_untested else ""
    if gate.failed:
        yield f"{_counted(gate.failed, 'failure')} not accepted by a baseline"
    for entry in gate.stale:
        yield f"{_at(entry)}: stale: {entry.id} passes again; remove the entry"
    for entry in gate.expired:
        yield f"{_at(entry)}: expired: {entry.id} was accepted until {entry.until}"
    if errors:
        yield f"{_counted(errors, 'error')} of the kit or the set-up"
    yield from run.broken
    if not run.finished:
        yield "the run did not finish"
    if run.partial:
        yield f"{accepted}only {len(run.selected & run.deciding)} of {len(run.deciding)} requirements that count were selected"
    if gate.untested and run.finished:
        yield f"{accepted}{_counted(gate.untested, 'requirement')} that count{'' if gate.untested[1:] else 's'} could not be tested"
    if gate.known:
        yield f"accepted: {_counted(gate.known, 'known failure')} of the baseline"
    if gate.gaps:
        yield f"accepted: {_counted(gate.gaps, 'known gap')} of the baseline"


def _counted(things: Sequence[object], name: str) -> str:
    return f"{len(things)} {name}{'s' if things[1:] else ''}"


def _at(entry: KnownFailure) -> str:
    return f"{entry.place.file}:{entry.place.line}"

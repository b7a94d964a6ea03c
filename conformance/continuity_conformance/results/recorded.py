"""A run as results.json records it: the types that every report is made from.

msgspec decodes them. They ignore fields that a later kit adds, and have defaults for those that an earlier kit did not write. They are structs rather than
dataclasses: only `read` makes them, and msgspec defines and fills structs several times faster.
"""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from continuity_conformance.core.cause import Cause
from continuity_conformance.core.verdicts import Result, RunVerdict, Verdict
from continuity_conformance.results.classes import summary
from continuity_spec import Level


class RecordedStep(Struct, frozen=True):
    """A step of a scenario, as the spec writes it."""

    number: str
    does: str
    expect: str


class RecordedScenario(Struct, frozen=True):
    name: str
    examples: int = 0
    steps: tuple[RecordedStep, ...] = ()


class RecordedKnownFailure(Struct, frozen=True):
    """The entry of the run's baseline about a requirement."""

    reason: str
    until: str
    issue: str | None
    expired: bool
    accepts: str = "failure"


class RecordedRequirement(Struct, frozen=True):
    """One requirement: its result, and its description in the spec. An old file has no description."""

    result: Result
    known: RecordedKnownFailure | None
    question: str
    why: str = ""
    origin: tuple[str, ...] = ()
    checked: str = ""
    build: tuple[str, ...] = ()
    pitfalls: tuple[str, ...] = ()
    decides: bool = True
    scenarios: tuple[RecordedScenario, ...] = ()

    @property
    def manual(self) -> bool:
        return self.result.manual

    @property
    def accepted(self) -> bool:
        """Whether it fails and a valid entry of the baseline accepts that."""
        valid = self.known is not None and not self.known.expired and self.known.accepts == "failure"
        return valid and self.result.verdict is Verdict.FAIL

    @property
    def accepted_gap(self) -> bool:
        """Whether it could not be tested and a valid entry of the baseline accepts that."""
        valid = self.known is not None and not self.known.expired and self.known.accepts == "untested"
        return valid and self.result.verdict is Verdict.NOT_TESTED


class RecordedTarget(Struct, frozen=True):
    name: str
    url: str
    header: str
    options: Mapping[str, str]
    offers: tuple[str, ...]
    observed: str


class RecordedKit(Struct, frozen=True):
    """The kit that wrote the file."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class RecordedClass(Struct, frozen=True):
    """A conformance class. An old file has only the verdict and the counts, and leaves out classes that do not apply."""

    name: str
    verdict: RunVerdict | None
    """None: no requirement of the class applies to the target."""
    counts: Mapping[Verdict, int]
    passed: int = 0
    applicable: int = 0
    next: str | None = None
    needs: tuple[str, ...] = ()
    decides: bool = True

    @property
    def summary(self) -> str:
        return summary(self.verdict, self.passed, self.applicable, self.next or "", self.needs)


class RecordedGate(Struct, frozen=True):
    passed: bool
    exit_code: int
    reasons: tuple[str, ...]
    fail_on: Level
    classes: tuple[str, ...] = ()

    def counts_for(self, level: Level) -> bool:
        """Whether a failure at this level fails the run."""
        return level.binding or self.fail_on is not Level.MUST


class RerunArguments(Struct, frozen=True):
    """Arguments that make `continuity run` test the same target again. None: not needed, not given, or not recorded by an old kit."""

    target: str | None
    profile: str | None
    examples: int | None = None
    seed: int | None = None


class Report(Struct, frozen=True):
    """A run. `rows` has each requirement of the release once, in its order."""

    target: RecordedTarget
    release: str
    kit: RecordedKit
    started: str
    seconds: float
    verdict: RunVerdict
    complete: bool
    finished: bool
    gate: RecordedGate
    again: RerunArguments
    classes: tuple[RecordedClass, ...]
    counts: Mapping[Verdict, int]
    rows: tuple[RecordedRequirement, ...] = msgspec.field(name="requirements")
    causes: tuple[Cause, ...] = ()
    tells_kinds: bool = True
    """Whether the file says in which way each failure differs. A file of an early kit does not."""

    @property
    def results(self) -> tuple[Result, ...]:
        return tuple(row.result for row in self.rows)

    def with_verdict(self, verdict: Verdict) -> list[RecordedRequirement]:
        return [row for row in self.rows if row.result.verdict is verdict]

    def closes_gate(self, row: RecordedRequirement) -> bool:
        """Whether a failure of this requirement closes the gate, unless it is accepted."""
        return row.decides and self.gate.counts_for(row.result.level)

    @property
    def failed(self) -> list[RecordedRequirement]:
        """The failures that close the gate."""
        return [row for row in self._failures if not row.accepted and self.closes_gate(row)]

    @property
    def warned(self) -> list[RecordedRequirement]:
        return [row for row in self._failures if not row.accepted and not self.closes_gate(row)]

    @property
    def accepted(self) -> list[RecordedRequirement]:
        return [row for row in self._failures if row.accepted]

    @property
    def _failures(self) -> list[RecordedRequirement]:
        return self.with_verdict(Verdict.FAIL)

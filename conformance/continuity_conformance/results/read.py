"""results.json read back: the one source of every report.

What has not the form of `results.schema.json`, or does not add up, is refused with a reason. Fields that a later kit adds are passed over.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from continuity_conformance.core.budget import DEFAULT_EXAMPLES, DEFAULT_SEED
from continuity_conformance.core.errors import UsageError
from continuity_conformance.core.text import one_line, visible
from continuity_conformance.core.verdicts import Evidence, Result, RunVerdict, Verdict, counts
from continuity_spec import Document, Level
from continuity_spec.load.schema import violations

_Data = Mapping[str, Any]


class UnreadableResultsError(UsageError):
    """A file that no report can be made from."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step as the spec writes it."""

    number: str
    does: str
    expect: str


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    examples: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """What the baseline of the run said about a requirement."""

    reason: str
    until: str
    issue: str
    expired: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement: its result, and what the spec says about it."""

    result: Result
    why: str
    origin: tuple[str, ...]
    how: str
    question: str
    checked: str
    build: tuple[str, ...]
    pitfalls: tuple[str, ...]
    scenarios: tuple[Scenario, ...]
    known: Known | None

    @property
    def manual(self) -> bool:
        return self.result.manual

    @property
    def accepted(self) -> bool:
        """Whether it fails, and the baseline knows."""
        return self.result.verdict is Verdict.FAIL and self.known is not None and not self.known.expired


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    url: str
    header: str
    options: Mapping[str, str]
    offers: tuple[str, ...]
    observed: str


@dataclass(frozen=True, slots=True)
class Class:
    name: str
    verdict: RunVerdict
    counts: Mapping[Verdict, int]


@dataclass(frozen=True, slots=True)
class Gate:
    passed: bool
    exit_code: int
    reasons: tuple[str, ...]
    fail_on: Level

    def counts_for(self, level: Level) -> bool:
        """Whether a failure at this level fails the run."""
        return level.binding or self.fail_on is not Level.MUST


@dataclass(frozen=True, slots=True)
class Again:
    """What `continuity run` is told to ask the same target again."""

    target: str
    profile: str | None
    examples: int
    seed: int


@dataclass(frozen=True, slots=True)
class Report:
    """A run. `rows` has each requirement of the release once, in its order."""

    target: Target
    release: str
    kit: str
    started: str
    seconds: float
    verdict: RunVerdict
    complete: bool
    finished: bool
    gate: Gate
    again: Again
    classes: tuple[Class, ...]
    rows: tuple[Row, ...]

    @property
    def results(self) -> tuple[Result, ...]:
        return tuple(row.result for row in self.rows)

    def with_verdict(self, verdict: Verdict) -> list[Row]:
        return [row for row in self.rows if row.result.verdict is verdict]

    @property
    def failed(self) -> list[Row]:
        """The failures that count."""
        return [row for row in self._failures if not row.accepted and self.gate.counts_for(row.result.level)]

    @property
    def warned(self) -> list[Row]:
        return [row for row in self._failures if not row.accepted and not self.gate.counts_for(row.result.level)]

    @property
    def accepted(self) -> list[Row]:
        return [row for row in self._failures if row.accepted]

    @property
    def _failures(self) -> list[Row]:
        return self.with_verdict(Verdict.FAIL)


def read(path: Path) -> Report:
    """The results in a file. Raises UnreadableResultsError."""
    data = _json(path)
    for violation in violations(Document(str(path), data, None), "results"):
        raise UnreadableResultsError(
            f"these are no results: {one_line(visible(violation.what))}.",
            where=str(path),
            do="Name a results.json that a run has written.",
        )
    report = _report(visible(data))
    _demand_that_it_adds_up(report, data, path)
    return report


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as trouble:
        raise UnreadableResultsError(
            f"it cannot be read ({trouble.strerror}).", where=str(path), do="Name a results.json."
        ) from None
    except (ValueError, RecursionError) as trouble:
        raise UnreadableResultsError(
            f"it is not JSON ({trouble}).", where=str(path), do="Name a results.json that a run has written."
        ) from None


def _demand_that_it_adds_up(report: Report, data: _Data, path: Path) -> None:
    counted = {verdict.value: number for verdict, number in counts(report.results).items()}
    if data["counts"] != counted or len({row.result.id for row in report.rows}) != len(report.rows):
        raise UnreadableResultsError(
            "its counts are not those of its requirements.", where=str(path), do="Take the file as the run wrote it."
        )


def _report(data: _Data) -> Report:
    gate = data["gate"]
    target = data["target"]
    again = data.get("again") or {"target": target["url"], "profile": None}
    return Report(
        target=Target(**{name: target[name] for name in Target.__slots__}),
        release=data["release"],
        kit=f"{data['kit']['name']} {data['kit']['version']}",
        started=data["started"],
        seconds=data["seconds"],
        verdict=RunVerdict(data["verdict"]),
        complete=data["complete"],
        finished=data["finished"],
        gate=Gate(gate["passed"], gate["exit_code"], tuple(gate["reasons"]), Level(gate["fail_on"])),
        again=Again(
            again["target"],
            again["profile"],
            again.get("examples", DEFAULT_EXAMPLES),
            again.get("seed", DEFAULT_SEED),
        ),
        classes=tuple(
            Class(each["name"], RunVerdict(each["verdict"]), _counts(each["counts"])) for each in data["classes"]
        ),
        rows=tuple(_row(each) for each in data["requirements"]),
    )


def _counts(data: _Data) -> dict[Verdict, int]:
    return {verdict: data[verdict.value] for verdict in Verdict}


def _row(data: _Data) -> Row:
    known = data["known"]
    return Row(
        result=_result(data),
        why=data.get("why", ""),
        origin=tuple(data.get("origin", ())),
        how=data.get("how", "manual" if data["manual"] else "scenario"),
        question=data.get("question", data["text"]),
        checked=data.get("checked", ""),
        build=tuple(data.get("build", ())),
        pitfalls=tuple(data.get("pitfalls", ())),
        scenarios=tuple(_scenario(each) for each in data.get("scenarios", ())),
        known=Known(known["reason"], known["until"], known["issue"] or "", known["expired"]) if known else None,
    )


def _result(data: _Data) -> Result:
    evidence = tuple(_evidence(each) for each in data["evidence"])
    return Result(
        data["id"],
        data["area"],
        Level(data["level"]),
        data["text"],
        Verdict(data["verdict"]),
        data["seconds"],
        reason=data["reason"],
        failure=next((each.failure for each in evidence if each.failure), ""),
        evidence=evidence,
        manual=data["manual"],
        pack=data.get("pack") or "",
    )


def _evidence(data: _Data) -> Evidence:
    return Evidence(
        data["scenario"],
        data["example"],
        Verdict(data["outcome"]),
        data.get("reason", ""),
        data["step"],
        data["expectation"],
        data["expected"],
        data["actual"],
        data["failure"],
        tuple(data["exchanges"]),
        tuple(data["interventions"]) if "interventions" in data else None,
    )


def _scenario(data: _Data) -> Scenario:
    steps = tuple(Step(each["number"], each["does"], each["expect"]) for each in data["steps"])
    return Scenario(data["name"], data["examples"], steps)

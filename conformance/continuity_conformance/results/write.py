"""results.json: a run as data, in the form of `results.schema.json`.

The only place where results become JSON. The file is replaced as a whole: a reader never sees half of it.
"""

import dataclasses
import hashlib
import json
import tempfile
from collections.abc import Mapping
from datetime import date, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from continuity_conformance.core.cause import Cause
from continuity_conformance.core.errors import KitError, UsageError
from continuity_conformance.core.files import replace_file
from continuity_conformance.core.verdicts import Evidence, Result, RunVerdict, Verdict, counts
from continuity_conformance.results.baseline import KnownFailure
from continuity_conformance.results.classes import ClassVerdict, class_of
from continuity_conformance.results.describe import described
from continuity_conformance.results.evidence import trace
from continuity_conformance.results.ledger import RunOutcome, TargetFacts
from continuity_conformance.results.one_line import headline

SCHEMA: Final = "urn:session-continuity:schema:results:1.0"
FILE_NAME: Final = "results.json"
DISTRIBUTION: Final = "session-continuity"
DIGEST: Final = "digest"


def prepare(folder: Path) -> None:
    """Check before the run that the report can be written after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise UsageError(
            f"the report cannot be written here ({error.strerror}).",
            where=str(folder),
            do="Name a folder that you may write to.",
        ) from None


def write(outcome: RunOutcome, folder: Path) -> Path:
    """Write results.json and return its path."""
    path = folder / FILE_NAME
    text = _text(with_digest(as_json(outcome)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(path, text)
    except OSError as error:
        raise KitError(
            f"the report cannot be written ({error.strerror}).", where=str(path), do="Free the folder and run again."
        ) from None
    return path


def _text(run: dict[str, object]) -> str:
    """The JSON text, with each requirement on a line of its own: one indented value a line would be twice as long."""
    requirements = run.pop("requirements")
    assert isinstance(requirements, list)
    head = json.dumps(run, ensure_ascii=False, indent=2).removesuffix("\n}")
    lines = ",\n".join(f"    {json.dumps(each, ensure_ascii=False)}" for each in requirements)
    return f'{head},\n  "requirements": [\n{lines}\n  ]\n}}\n'


def as_json(outcome: RunOutcome) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "target": _target(outcome.target),
        "release": outcome.release,
        "packs": [
            {"name": each.name, "distribution": each.plugin.distribution, "version": each.plugin.version}
            for each in outcome.packs.loaded
        ],
        "kit": {"name": DISTRIBUTION, "version": version(DISTRIBUTION)},
        "started": _timestamp(outcome.started),
        "seconds": round(outcome.seconds, 3),
        "verdict": outcome.verdict.value,
        "complete": outcome.complete,
        "finished": outcome.finished,
        "gate": _gate(outcome),
        "again": _again(outcome),
        "classes": [_class(each, outcome) for each in outcome.classes],
        "counts": _counts(counts(outcome.results)),
        "causes": [_cause(cause) for cause in outcome.causes],
        "requirements": [
            {**_requirement(result, outcome), **described(entry)}
            for result, entry in zip(outcome.results, outcome.requirements, strict=True)
        ],
    }


def digest(results: Mapping[str, Any]) -> str:
    """The SHA-256 of the content, whatever its formatting and the order of its fields.

    It shows that nobody has changed the file by mistake. Whoever means to deceive can compute it again.
    """
    content = {name: value for name, value in results.items() if name != DIGEST}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def with_digest(results: Mapping[str, Any]) -> dict[str, Any]:
    return {DIGEST: digest(results), **{name: value for name, value in results.items() if name != DIGEST}}


def _timestamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _target(facts: TargetFacts) -> dict[str, object]:
    return {
        "name": facts.name,
        "url": facts.url,
        "header": facts.header,
        "options": dict(facts.options),
        "offers": list(facts.offers),
        "observed": facts.observed,
    }


def _class(each: ClassVerdict, outcome: RunOutcome) -> dict[str, object]:
    unreachable = outcome.verdict is RunVerdict.UNREACHABLE
    return {
        "name": each.name,
        "verdict": outcome.verdict if unreachable else each.verdict,
        "counts": _counts(each.counts),
        "passed": each.passed,
        "applicable": each.applicable,
        "next": each.next or None,
        "needs": list(each.needs),
        "decides": each.decides,
    }


def _cause(cause: Cause) -> dict[str, object]:
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in dataclasses.asdict(cause).items()
    }


def _counts(tally: Mapping[Verdict, int]) -> dict[str, int]:
    return {verdict.value: number for verdict, number in tally.items()}


def _gate(outcome: RunOutcome) -> dict[str, object]:
    return {
        "passed": outcome.gate.passed,
        "exit_code": int(outcome.gate.exit_code),
        "reasons": list(outcome.gate.reasons),
        "fail_on": outcome.run_options.fail_on.value,
        "accept_untested": outcome.run_options.accept_untested,
        "baseline": outcome.baseline.file or None,
        "classes": list(outcome.run_options.classes),
        "areas": list(outcome.run_options.areas),
        "selected": len(outcome.selected),
    }


def _again(outcome: RunOutcome) -> dict[str, object]:
    """What runs the same again. A target that the kit started is named, not addressed; where a profile says how, the profile is enough."""
    started = "://" not in outcome.run_options.target
    profile = outcome.run_options.profile
    named = outcome.run_options.target if profile is None else None
    return {
        "target": named if started else outcome.target.url,
        "profile": str(profile) if profile is not None else None,
        "examples": outcome.run_options.budget.examples,
        "seed": outcome.run_options.budget.seed,
    }


def _known(entry: KnownFailure | None, today: date) -> dict[str, object] | None:
    if entry is None:
        return None
    until = entry.until.isoformat()
    told = {"reason": entry.reason, "until": until, "issue": entry.issue, "accepts": entry.accepts}
    return {**told, "expired": entry.expired(today)}


def _requirement(result: Result, outcome: RunOutcome) -> dict[str, object]:
    return {
        "id": result.id,
        "area": result.area,
        "class": class_of(result) or None,
        "level": result.level.value,
        "decides": result.id in outcome.deciding,
        "text": result.text,
        "verdict": result.verdict.value,
        "seconds": round(result.seconds, 3),
        "reason": "" if result.verdict is Verdict.PASS else result.reason or headline(result),
        "blocked_by": result.blocked_by or None,
        "manual": result.manual,
        "pack": result.pack or None,
        "known": _known(outcome.baseline.entries.get(result.id), outcome.today),
        "evidence": [_evidence(each) for each in result.evidence],
    }


def _evidence(each: Evidence) -> dict[str, object]:
    return {
        "scenario": each.scenario,
        "example": each.example,
        "outcome": each.outcome.value,
        "reason": each.reason,
        "step": each.step,
        "expectation": each.expectation,
        "expected": each.expected,
        "actual": each.actual,
        "failure": each.failure,
        "kinds": list(each.kinds),
        "output": each.output,
        **_exchanges(each),
        "interventions": [dict(intervention) for intervention in each.interventions or ()],
    }


def _exchanges(each: Evidence) -> dict[str, object]:
    """All exchanges with their headers and bodies, or one line for each if the scenario passed: they would be nine tenths of the file."""
    if each.outcome is Verdict.PASS:
        return {"exchanges": [], "trace": trace(each.exchanges)}
    return {"exchanges": [dict(exchange) for exchange in each.exchanges]}

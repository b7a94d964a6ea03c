"""Failures that belong to a more basic requirement: *blocked by* it.

A scenario rests on other requirements (`rests_on` in the spec). Where it fails only in ways in which one of them fails too in the same run, it never reached its own
claim: its verdict is *not tested*, with the reason "blocked by ID". A failure of another kind stays a failure. A blocked requirement is never a pass, and fails on its
own once the other one is fixed.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from continuity_conformance.core.verdicts import Evidence, Result, Verdict, worst
from continuity_spec import Requirement
from continuity_spec.foundations import explains

_STRICT: Final = "Strict"


def blocked(requirement: Requirement, result: Result, others: Mapping[str, Result]) -> Result:
    """The result with each failure that a more basic requirement explains marked as blocked. `others`: the results of those requirements."""
    if result.verdict is Verdict.PASS and requirement.check is not None and requirement.class_name == _STRICT:
        return _unproven(requirement, result, others)
    if result.verdict is not Verdict.FAIL:
        return result
    rests_on = {scenario.name: scenario.rests_on for scenario in requirement.scenarios}
    causes = [_cause(each, rests_on.get(each.scenario, requirement.rests_on), others) for each in result.evidence]
    evidence = tuple(
        _as_blocked(each, cause) if cause else each for each, cause in zip(result.evidence, causes, strict=True)
    )
    verdict = worst(each.outcome for each in evidence)
    if verdict is Verdict.FAIL:
        leading = next(each for each in evidence if each.outcome is Verdict.FAIL)
        return replace(result, evidence=evidence, reason=leading.reason, failure=leading.failure)
    cause = next(filter(None, causes), "")
    return replace(
        result, verdict=verdict, evidence=evidence, reason=f"blocked by {cause}", failure="", blocked_by=cause
    )


def _unproven(requirement: Requirement, result: Result, others: Mapping[str, Result]) -> Result:
    """The form of answers proves nothing about a server that keeps no conversation: a stateless one has it too."""
    failed = (each for each in requirement.rests_on if each in others and others[each].verdict is Verdict.FAIL)
    cause = next(failed, "")
    if not cause:
        return result
    return replace(result, verdict=Verdict.NOT_TESTED, reason=f"blocked by {cause}", blocked_by=cause)


def _cause(evidence: Evidence, rests_on: tuple[str, ...], others: Mapping[str, Result]) -> str:
    """The requirement that explains a failure; empty if none does."""
    if evidence.outcome is not Verdict.FAIL:
        return ""
    for foundation in rests_on:
        identity, _, only = foundation.partition(" ")
        other = others.get(identity)
        if other is not None and evidence.kinds and set(evidence.kinds) <= _kinds(other, identity, only):
            return other.blocked_by or identity
    return ""


def _kinds(result: Result, identity: str, only: str) -> set[str]:
    """The ways in which a requirement fails, or would fail if it were not blocked itself, as far as they are its own matter. `only`: the one that counts."""
    if result.verdict is not Verdict.FAIL and not result.blocked_by:
        return set()
    kinds = {kind for each in result.evidence for kind in each.kinds if explains(identity, kind)}
    return kinds & {only} if only else kinds


def _as_blocked(evidence: Evidence, cause: str) -> Evidence:
    reason = f"blocked by {cause}: {evidence.reason}"
    return replace(evidence, outcome=Verdict.NOT_TESTED, reason=reason, failure="")

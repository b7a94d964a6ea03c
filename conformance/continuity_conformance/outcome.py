"""How a scenario ended, as evidence, and what all evidence of a requirement comes to."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from continuity_conformance.dialogue import Dialogue
from continuity_conformance.errors import ContinuityError
from continuity_conformance.evidence import Redactor, as_evidence, failure_text
from continuity_conformance.failure import Unmet, Untested
from continuity_conformance.stage import Exchange
from continuity_conformance.verdicts import Evidence, Result, Verdict, worst
from continuity_spec import Requirement


@dataclass(frozen=True, slots=True)
class Scene:
    """What is being played: a requirement, its scenario and example, and the target's name for the command that runs it again."""

    requirement: Requirement
    scenario: str
    example: str
    target: str
    redactor: Redactor

    @property
    def title(self) -> str:
        return " · ".join(part for part in (self.scenario, self.example) if part)


@dataclass(frozen=True, slots=True)
class Played:
    """A dialogue that is over, and how it ended."""

    dialogue: Dialogue
    evidence: Evidence


async def outcome(scene: Scene, dialogue: Dialogue, playing: Awaitable[None], only: Exchange | None = None) -> Evidence:
    """Play, and tell how it ended, with all exchanges of the dialogue or `only` one as evidence."""
    unmet: Unmet | None = None
    verdict, reason = Verdict.PASS, ""
    try:
        await playing
    except Unmet as trouble:
        unmet, verdict = trouble, Verdict.FAIL
        reason = f"step {trouble.number}, {trouble.expectation}: expected {trouble.expected}, actual {trouble.actual}"
    except Untested as trouble:
        verdict, reason = Verdict.NOT_TESTED, str(trouble)
    except ContinuityError as trouble:
        verdict, reason = Verdict.ERROR, str(trouble)
    if verdict is Verdict.PASS and dialogue.untested:
        verdict, reason = Verdict.NOT_TESTED, dialogue.untested[0]
    return _evidence(scene, [only] if only else dialogue.exchanges, verdict, reason, unmet)


def _evidence(scene: Scene, shown: Sequence[Exchange], verdict: Verdict, reason: str, unmet: Unmet | None) -> Evidence:
    redacted = scene.redactor.text
    exchanges = tuple(as_evidence(exchange, scene.redactor) for exchange in shown)
    if unmet is None:
        return Evidence(scene.scenario, scene.example, verdict, redacted(reason), exchanges=exchanges)
    return Evidence(
        scene.scenario,
        scene.example,
        verdict,
        redacted(reason),
        step=f"{unmet.number} {unmet.step}".strip(),
        expectation=unmet.expectation,
        expected=redacted(unmet.expected),
        actual=redacted(unmet.actual),
        failure=redacted(failure_text(scene.requirement, scene.title, unmet, exchanges, scene.target)),
        exchanges=exchanges,
    )


def result(requirement: Requirement, evidence: Sequence[Evidence], seconds: float) -> Result:
    """A requirement is as good as its worst scenario."""
    verdict = worst(one.outcome for one in evidence)
    leading = next((one for one in evidence if one.outcome is verdict), None)
    return Result(
        requirement.id,
        requirement.area,
        requirement.level,
        requirement.text,
        verdict,
        round(seconds, 3),
        reason=leading.reason if leading and verdict is not Verdict.PASS else "",
        failure=_first_failure(evidence),
        evidence=tuple(evidence),
    )


def fewest(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Of many examples that went well one is shown; what did not go well is shown whole."""
    well = [one for one in evidence if one.outcome is Verdict.PASS]
    return [*(one for one in evidence if one.outcome is not Verdict.PASS), *well[:1]]


def _first_failure(evidence: Sequence[Evidence]) -> str:
    """The first failure whole, and how many more there are: one is enough to mend, and all are in the evidence."""
    failures = [one.failure for one in evidence if one.failure]
    others = f"\n  ({len(failures) - 1} more of its scenarios and examples fail.)" if len(failures) > 1 else ""
    return failures[0] + others if failures else ""

"""How a scenario ended, as evidence, and the result of a requirement from all its evidence."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from continuity_conformance.core.budget import Budget
from continuity_conformance.core.errors import ContinuityError
from continuity_conformance.core.failure import Inapplicable, Unmet, Untested
from continuity_conformance.core.verdicts import Evidence, Result, Verdict, worst
from continuity_conformance.results.evidence import DialogueEvidence, KeptExchanges, as_note, failure_text
from continuity_conformance.results.redaction import Redactor
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.record import Intervention
from continuity_spec import Requirement


@dataclass(frozen=True, slots=True)
class Scene:
    """What is played: a requirement, its scenario and example, and the options that name the target to `continuity run`.

    `budget`: the seed and number of examples, if the check generates its data. `output`: gives what the target has written in the meantime.
    """

    requirement: Requirement
    scenario: str
    example: str
    target: str
    redactor: Redactor
    budget: Budget | None = None
    output: Callable[[], str] = str

    @property
    def again(self) -> str:
        """The options that run it again."""
        return self.target + (self.budget.arguments if self.budget else "")

    @property
    def title(self) -> str:
        return " · ".join(part for part in (self.scenario, self.example) if part)


@dataclass(frozen=True, slots=True)
class Played:
    """A finished dialogue and its evidence. `requirement`: the id of its requirement, empty for the calibration."""

    dialogue: Dialogue
    evidence: Evidence
    requirement: str = ""


@dataclass(frozen=True, slots=True)
class ScenarioEnd:
    """The verdict on a scenario, and the reason if it is not a pass."""

    verdict: Verdict
    reason: str = ""
    unmet: Unmet | None = None


async def outcome(scene: Scene, dialogue: Dialogue, playing: Awaitable[None]) -> Evidence:
    """Play a scenario and return its evidence with all exchanges."""
    ended = await ending(playing, dialogue.untested)
    await _look(dialogue)
    return evidence(scene, ended, dialogue.exchanges, dialogue.record.log.interventions)


async def ending(playing: Awaitable[None], untested: Sequence[str]) -> ScenarioEnd:
    """Wait for the end of a scenario. `untested` is read afterwards: why something in it could not be tested."""
    try:
        await playing
    except Unmet as unmet:
        place = f"step {unmet.number}, {unmet.expectation}" if unmet.number else unmet.expectation
        saved = f"; saved as {unmet.saved}" if unmet.saved else ""
        return ScenarioEnd(Verdict.FAIL, f"{place}: expected {unmet.expected}, actual {unmet.actual}{saved}", unmet)
    except Inapplicable as reason:
        return ScenarioEnd(Verdict.NOT_APPLICABLE, str(reason))
    except Untested as reason:
        return ScenarioEnd(Verdict.NOT_TESTED, str(reason))
    except ContinuityError as reason:
        return ScenarioEnd(Verdict.ERROR, str(reason))
    return ScenarioEnd(Verdict.NOT_TESTED, untested[0]) if untested else ScenarioEnd(Verdict.PASS)


async def _look(dialogue: Dialogue) -> None:
    """Look up what the model saw in the turns that no expectation checked, for the diagram of the conversation."""
    for exchange in dialogue.exchanges:
        if exchange.reading is not None:
            with suppress(Unmet, Untested, ContinuityError):
                await dialogue.record.view(exchange)


def evidence(scene: Scene, ended: ScenarioEnd, shown: Sequence[Exchange], done: Sequence[Intervention]) -> Evidence:
    redacted, unmet = scene.redactor.text, ended.unmet
    dialogue = DialogueEvidence(
        KeptExchanges(shown, scene.redactor),
        tuple(as_note(intervention, scene.redactor) for intervention in done),
        redacted(scene.output()) if unmet is not None else "",
    )
    told = Evidence(
        scene.scenario,
        scene.example,
        ended.verdict,
        redacted(ended.reason),
        exchanges=dialogue.exchanges,
        interventions=dialogue.interventions,
    )
    if unmet is None:
        return told
    return replace(
        told,
        output=dialogue.output,
        step=redacted(f"{unmet.number} {unmet.step}".strip()),
        expectation=unmet.expectation,
        expected=redacted(unmet.expected),
        actual=redacted(unmet.actual),
        kinds=unmet.kinds or (unmet.expectation,),
        failure=redacted(failure_text(scene.requirement, scene.title, unmet, dialogue, scene.again)),
    )


def result(requirement: Requirement, evidence: Sequence[Evidence], seconds: float) -> Result:
    """The result of a requirement: the worst verdict of its scenarios."""
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
        pack=requirement.pack,
        class_name=requirement.class_name,
    )


def fewest(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Keep one example that passed, and all that did not."""
    well = [one for one in evidence if one.outcome is Verdict.PASS]
    return [*(one for one in evidence if one.outcome is not Verdict.PASS), *well[:1]]


def _first_failure(evidence: Sequence[Evidence]) -> str:
    """The text of the first failure, and how many more there are; the evidence has all of them."""
    failures = [one.failure for one in evidence if one.failure]
    others = f"\n  ({len(failures) - 1} more of its scenarios and examples fail.)" if len(failures) > 1 else ""
    return failures[0] + others if failures else ""

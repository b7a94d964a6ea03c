"""`always` entries: what must hold for every matching answer of the run.

Any answer can make an entry fail. Only answers of passed scenarios, whose requirement did not fail, can make it pass: a server that answers
everything with valid objects and random ids must not pass. Without a matching answer the entry is *not tested*.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from continuity_conformance.core.verdicts import Evidence, Verdict
from continuity_conformance.results.outcome import Played, ScenarioEnd, Scene, ending, evidence
from continuity_conformance.results.redaction import Redactor
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.expect.judge import is_status, judge
from continuity_conformance.scenario.record import Intervention
from continuity_spec import Always, Requirement

_SHOWN: Final = 20
"""How many of the failing answers are shown."""


async def judge_always(
    requirement: Requirement, played: Sequence[Played], failed: Collection[str], redactor: Redactor, target: str
) -> list[Evidence]:
    """The evidence for an `always` entry: the answers that fail it, or one that proves it.

    `failed`: the requirements that failed.
    """
    always = requirement.always
    assert always is not None
    judged = [
        (one, exchange, ended)
        for one in played
        for exchange in one.dialogue.exchanges
        if _matches(always, exchange) and _counts(one, ended := await _judge(always, one, exchange), failed)
    ]
    bad = [each for each in judged if each[2].verdict is not Verdict.PASS][:_SHOWN]
    good = [each for each in judged if each[2].verdict is Verdict.PASS][:1]
    shown = [
        evidence(
            Scene(requirement, one.evidence.scenario, "", target, redactor), ended, [exchange], _before(one, exchange)
        )
        for one, exchange, ended in (*bad, *good)
    ]
    return shown or [Evidence("", "", Verdict.NOT_TESTED, "no passed requirement had an answer of this kind")]


def _before(played: Played, exchange: Exchange) -> list[Intervention]:
    """The interventions before an answer."""
    return [each for each in played.dialogue.record.log.interventions if each.at <= exchange.at]


async def _judge(always: Always, played: Played, exchange: Exchange) -> ScenarioEnd:
    step = replace(exchange.step, expect={"status": always.answered, **always.expect}, at_once=1)
    untested: list[str] = []

    async def judging() -> None:
        judgement = await judge(played.dialogue.record, step, exchange.number, [_unflawed(exchange)])
        untested.extend(judgement.untested)

    return await ending(judging(), untested)


def _unflawed(exchange: Exchange) -> Exchange:
    """The exchange without its reading flaw: the scenario reports that, an `always` entry fails only for its own reason."""
    return replace(exchange, reading=replace(exchange.reading, flaw="")) if exchange.reading else exchange


def _counts(played: Played, ended: ScenarioEnd, failed: Collection[str]) -> bool:
    proves = played.evidence.outcome is Verdict.PASS and played.requirement not in failed
    return ended.verdict is Verdict.FAIL or (ended.verdict is not Verdict.NOT_TESTED and proves)


def _matches(always: Always, exchange: Exchange) -> bool:
    """Whether an entry is about this answer. An answer that the kit's own kill cut off does not count."""
    if exchange.answer.error and exchange.step.expect.get("status") == "any":
        return False
    answered = always.answered if isinstance(always.answered, list | tuple) else [always.answered]
    streamed = always.streamed is None or always.streamed == exchange.answer.streamed
    status = exchange.answer.outcome
    return exchange.verb in always.after and streamed and status > 0 and any(is_status(status, one) for one in answered)

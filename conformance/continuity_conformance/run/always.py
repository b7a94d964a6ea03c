"""`always` entries: what must hold for every matching answer of the run.

Any answer can make an entry fail. Only a target that keeps conversations can pass: a server that answers everything with valid objects and random ids
must not. So an answer counts if the target passed some other requirement, or if its own scenario passed and its requirement did not fail. Without a
matching answer the entry is *not tested*.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from continuity_conformance.core.failure import Inapplicable, Unmet, Untested
from continuity_conformance.core.verdicts import Evidence, Result, Verdict
from continuity_conformance.results.outcome import Played, ScenarioEnd, Scene, ending, evidence
from continuity_conformance.results.redaction import Redactor
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.expect.judge import EXPECTATIONS, is_status, judge
from continuity_conformance.scenario.record import Intervention
from continuity_spec import Always, Requirement

_PASSED: Final = ScenarioEnd(Verdict.PASS)
_HEADER: Final = "$HEADER"
"""The only variable in `always` entries that no answer can bind."""
_CAPABILITIES: Final = "/v1/capabilities"
_SHOWN: Final = 20
"""How many of the failing answers are shown."""


async def judge_always(
    requirement: Requirement,
    played: Sequence[Played],
    decided: Collection[Result],
    redactor: Redactor,
    target: str,
) -> list[Evidence]:
    """The evidence for an `always` entry: the answers that fail it, or one that proves it.

    `decided`: the results of the other requirements so far.
    """
    always = requirement.always
    assert always is not None
    keeps_conversations = any(result.verdict is Verdict.PASS for result in decided)
    failed = frozenset(result.id for result in decided if result.verdict is Verdict.FAIL or result.blocked_by)
    quickly = _names_nothing(always)
    judged = [
        (one, exchange, ended)
        for one in played
        for exchange in one.dialogue.exchanges
        if _matches(always, exchange)
        and _counts(
            ended := await _judge(always, one, exchange, quickly=quickly), keeps_conversations or _proves(one, failed)
        )
    ]
    bad = [each for each in judged if each[2].verdict not in {Verdict.PASS, Verdict.NOT_APPLICABLE}][:_SHOWN]
    good = [each for each in judged if each[2].verdict is Verdict.PASS][:1]
    shown = [
        evidence(
            Scene(requirement, one.evidence.scenario, "", target, redactor), ended, [exchange], _before(one, exchange)
        )
        for one, exchange, ended in (*bad, *good)
    ]
    return shown or [_nothing_shown([ended for *_, ended in judged])]


def _nothing_shown(judged: Sequence[ScenarioEnd]) -> Evidence:
    """Why no answer proves the entry: there was none of its kind, or none that it applies to."""
    if judged:
        return Evidence("", "", Verdict.NOT_APPLICABLE, judged[0].reason)
    return Evidence("", "", Verdict.NOT_TESTED, "no passed requirement had an answer of this kind")


def _before(played: Played, exchange: Exchange) -> list[Intervention]:
    """The interventions before an answer."""
    return [each for each in played.dialogue.record.log.interventions if each.at <= exchange.at]


async def _judge(always: Always, played: Played, exchange: Exchange, *, quickly: bool) -> ScenarioEnd:
    """Judge one answer. Most answers of a run are accepted and meet the entry at a first look, where it may have one; all others are judged like a step."""
    if quickly and exchange.answer.accepted and await _meets(always, played, exchange):
        return _PASSED
    step = replace(exchange.step, expect={"status": always.answered, **always.expect}, at_once=1)
    untested: list[str] = []

    async def judging() -> None:
        judgement = await judge(played.dialogue.record, step, exchange.number, [_unflawed(exchange)])
        untested.extend(judgement.untested)

    return await ending(judging(), untested)


def _names_nothing(always: Always) -> bool:
    """Whether an entry can have a first look: one whose expectations name variables could capture one there."""
    named = str(list(always.expect.values())).replace(_HEADER, "")
    return always.expect.keys() <= EXPECTATIONS.keys() and "$" not in named


async def _meets(always: Always, played: Played, exchange: Exchange) -> bool:
    """Whether each expectation holds."""
    try:
        for word, value in always.expect.items():
            await EXPECTATIONS[word](played.dialogue.record, exchange, value)
    except (Inapplicable, Unmet, Untested):
        return False
    return True


def _unflawed(exchange: Exchange) -> Exchange:
    """The exchange without its reading flaw, and without the mark of a refused turn: that the model was asked for it is reported by the scenario.

    An `always` entry fails only for its own reason.
    """
    exchange = exchange if exchange.answer.accepted else replace(exchange, mark="")
    reading = exchange.reading
    return replace(exchange, reading=replace(reading, flaw="")) if reading and reading.flaw else exchange


def _counts(ended: ScenarioEnd, proves: bool) -> bool:
    return ended.verdict is Verdict.FAIL or (ended.verdict is not Verdict.NOT_TESTED and proves)


def _proves(played: Played, failed: Collection[str]) -> bool:
    return played.evidence.outcome is Verdict.PASS and played.requirement not in failed


def _matches(always: Always, exchange: Exchange) -> bool:
    """Whether an entry is about this answer.

    An answer that the kit's own kill cut off does not count, nor does one of GET /v1/capabilities, which is a matter of DISCOVER.
    """
    if exchange.answer.error and exchange.step.expect.get("status") == "any":
        return False
    if exchange.request.path.endswith(_CAPABILITIES):
        return False
    answered = always.answered if isinstance(always.answered, list | tuple) else [always.answered]
    streamed = always.streamed is None or always.streamed == exchange.answer.streamed
    status = exchange.answer.outcome
    return exchange.verb in always.after and streamed and status > 0 and any(is_status(status, one) for one in answered)

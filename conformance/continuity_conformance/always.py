"""`always` entries: what holds on every matching answer of the whole run.

An answer of a scenario that passed can prove it; any answer can refute it. So a server that answers everything with valid objects and random ids
proves nothing. No matching answer is *not tested*.
"""

from collections.abc import Sequence
from dataclasses import replace

from continuity_conformance.evidence import Redactor
from continuity_conformance.judge import Judge, is_status
from continuity_conformance.outcome import Played, Scene, fewest, outcome
from continuity_conformance.stage import Exchange
from continuity_conformance.verdicts import Evidence, Verdict
from continuity_spec import Always, Requirement


async def judge_always(
    requirement: Requirement, played: Sequence[Played], redactor: Redactor, target: str
) -> list[Evidence]:
    """The evidence for an `always` entry, from everything that was played."""
    always = requirement.always
    assert always is not None
    found: list[Evidence] = []
    for one in played:
        scene = Scene(requirement, one.evidence.scenario, "", target, redactor)
        found += [
            await _judge(scene, always, one, exchange)
            for exchange in one.dialogue.exchanges
            if _matches(always, exchange)
        ]
    proven = [one for one in found if one.outcome is not Verdict.NOT_TESTED]
    nothing = Evidence("", "", Verdict.NOT_TESTED, "no answer of a scenario that passed is of this kind")
    return fewest(proven) or [nothing]


async def _judge(scene: Scene, always: Always, played: Played, exchange: Exchange) -> Evidence:
    dialogue = played.dialogue
    noted, dialogue.untested = dialogue.untested, []
    step = replace(exchange.step, expect={"status": always.answered, **always.expect}, at_once=1)
    shown = await outcome(scene, dialogue, Judge(dialogue, step, exchange.number, [exchange]).judge(), exchange)
    dialogue.untested = noted
    proves = shown.outcome is Verdict.FAIL or played.evidence.outcome is Verdict.PASS
    return shown if proves else replace(shown, outcome=Verdict.NOT_TESTED)


def _matches(always: Always, exchange: Exchange) -> bool:
    answered = always.answered if isinstance(always.answered, list | tuple) else [always.answered]
    streamed = always.streamed is None or always.streamed == exchange.answer.streamed
    status = exchange.answer.status
    return exchange.verb in always.after and streamed and status > 0 and any(is_status(status, one) for one in answered)

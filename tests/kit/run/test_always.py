"""What is judged on every answer of a run fails only for its own reason."""

import asyncio
from dataclasses import dataclass
from types import SimpleNamespace

from continuity_conformance.core.verdicts import Evidence, Verdict
from continuity_conformance.http.messages import Answer, Request
from continuity_conformance.results.outcome import Played
from continuity_conformance.run import always
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.interventions import made_step
from continuity_conformance.scenario.variables import Variables
from continuity_spec.model import Always


@dataclass(frozen=True)
class AskedRecord:
    """The record of a scenario in which the model was asked for every turn."""

    context: SimpleNamespace
    exchanges: list[Exchange]
    variables: Variables

    async def times_asked(self, _: str) -> int:
        return 1


def test_a_turn_that_is_refused_after_the_model_was_asked_fails_no_entry_about_errors():
    step = made_step("chat", {"say": "red"})
    answer = Answer(400, (), "{}", {})
    exchange = Exchange(
        step, "1", "chat", "alice", Request("POST", "http://127.0.0.1/"), answer, 0.0, "red", "aaaa0000", None
    )
    target = SimpleNamespace(observed="probe", options={"turns": "serialize"})
    record = AskedRecord(SimpleNamespace(target=target), [exchange], Variables({}, {}))
    played = Played(SimpleNamespace(record=record), Evidence("", "", Verdict.PASS))
    entry = Always(frozenset({"chat"}), "4xx", None, {})

    judged = asyncio.run(always._judge(entry, played, exchange, quickly=False))

    assert judged.verdict is Verdict.PASS

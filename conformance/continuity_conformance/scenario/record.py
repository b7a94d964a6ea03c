"""The record of one scenario: what was sent, answered, seen and done. Expectations read it, and nothing else.

The dialogue writes the record; the judge reads it. `view` and `times_asked` ask the probe's log what the model saw.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile

from continuity_conformance.core.failure import Unmet, Untested
from continuity_conformance.probe.view import View, turns
from continuity_conformance.scenario.context import Context
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.observe import call_of, find_view, times_asked
from continuity_conformance.scenario.variables import Variables
from continuity_conformance.scenario.wording import Wording


@dataclass(slots=True)
class Intervention:
    """One intervention. `how`: by which control; `proof`: what showed that it really happened, where that is checked."""

    at: float
    number: str
    does: str
    how: str = ""
    proof: str = ""


class InterventionLog:
    """The interventions of one scenario, and its clock."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self.interventions: list[Intervention] = []

    @property
    def elapsed(self) -> float:
        """Seconds since the scenario began."""
        return time.monotonic() - self._started

    def intervention(self, number: str, does: str, how: str = "") -> Intervention:
        """Log an intervention before it is done; `how` may be added later."""
        note = Intervention(self.elapsed, number, does, how)
        self.interventions.append(note)
        return note


@dataclass(slots=True)
class Record:
    """Everything that is known about one scenario while it plays, and after it."""

    context: Context
    variables: Variables
    wording: Wording
    log: InterventionLog = field(default_factory=InterventionLog)
    exchanges: list[Exchange] = field(default_factory=list)
    copies: dict[str, list[str]] = field(default_factory=dict)
    """The labels of the accepted copies of a turn that was sent several times at once, by what it said."""
    failed_marks: set[str] = field(default_factory=set)
    """The marks of turns that were not accepted."""
    silent_marks: set[str] = field(default_factory=set)
    """The marks of turns that the model answered with an empty text, which has no mark of its own."""
    compacted: dict[str, int] = field(default_factory=dict)
    """The marks of the turns that a compression may have replaced, with the number of exchanges before the first such one."""
    quotable: set[str] = field(default_factory=set)
    """The marks of the turns that the target may quote in a message of its own, because their summary failed."""
    model_summarised: bool = False
    """Whether the target asked the model for a summary."""
    untested: list[str] = field(default_factory=list)
    """Why something could not be tested."""

    @classmethod
    def begin(cls, context: Context, example: Mapping[str, object]) -> "Record":
        """The empty record of a scenario, or of one example of it."""
        return cls(context, Variables(example, context.constants, context.target.profile.ids), Wording(context.labels))

    async def view(self, exchange: Exchange) -> View:
        """What the model saw in the call whose answer the client got. The first look is kept in the exchange."""
        if exchange.view is None:
            exchange.view = await find_view(self.context, exchange)
            exchange.seen = tuple(
                turns(exchange.view, self.wording.label, frozenset(self.failed_marks), frozenset(self.silent_marks))
            )
            exchange.summarised = tuple(sorted(self.wording.label(mark) for mark in exchange.view.summarised))
            exchange.replays = self._replayed(exchange)
        return exchange.view

    def may_be_gone(self, label: str) -> bool:
        """Whether a turn was said before a compression."""
        return self.wording.mark(label) in self.compacted

    def may_be_quoted(self, label: str) -> bool:
        """Whether a turn was said before a compression that succeeded or failed."""
        return self.may_be_gone(label) or self.wording.mark(label) in self.quotable

    async def has_unreadable_summary(self, view: View) -> bool:
        """Whether the model got a text that may be a summary by the target itself: no turn before the compression had it."""
        if view.messages is None or view.has_summary or self.model_summarised or not self.compacted:
            return False
        known: set[str] = set()
        for exchange in self.exchanges[: min(self.compacted.values())]:
            with suppress(Unmet, Untested):
                known |= (await self.view(exchange)).unmarked_texts()
        return bool(view.unmarked_texts() - known)

    async def times_asked(self, label: str) -> int:
        """How often the model was asked with this turn as the newest."""
        return await times_asked(self.context, self.wording.mark(label))

    def _replayed(self, exchange: Exchange) -> str:
        """The step that had this answer before; empty where the model was called for this one."""
        call = call_of(exchange)
        if call is None:
            return ""
        before = takewhile(lambda past: past is not exchange, self.exchanges)
        return next((past.number for past in before if past.reading is not None and call_of(past) == call), "")

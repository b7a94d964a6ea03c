"""Makes a target compress by filling its context, where it has no control for that: long turns, until one more is too much.

Fillers use the same way to name the session as the step that is to compress: its header, its slug, a chain of responses, or the whole history in
the body of a derived conversation. Whether the model then got a summarising call is verified as for any control. If the target compresses during a
filler, the kit has learned how many fit: the scenario is played again with fewer, so that the step's own turn is the one that is too much.
"""

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from continuity_conformance.core.failure import Untested
from continuity_conformance.probe.marks import content_text, marks_in
from continuity_conformance.probe.reply import ModelCall
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.expect.model import truncates
from continuity_conformance.scenario.observe import call_of, observer, summary_calls
from continuity_conformance.scenario.record import Record
from continuity_conformance.scenario.request_builder import principal_of
from continuity_conformance.scenario.same_conversation import last_turn, turns_before
from continuity_conformance.target.profile import Filling
from continuity_spec import Step

_MANNER: Final = (
    "session",
    "conversation",
    "previous_response_id",
    "store",
    "stream",
    "system",
    "developer",
    "as",
    "server",
)
"""The parameters of a step that its fillers share: how the session is named and the request is made."""
Send = Callable[[Step, str], Awaitable[Exchange]]
Room = dict[str, int]
"""How many fillers fit before a turn, by the label of the turn, where an earlier try showed that it is fewer than the profile says."""


class Fillers:
    """The fillers of one scenario."""

    def __init__(self, record: Record, filling: Filling, room: Room) -> None:
        self._record = record
        self._context = record.context
        self._variables = record.variables
        self._wording = record.wording
        self._exchanges = record.exchanges
        self._filling = filling
        self._room = room

    async def fill(self, step: Step, label: str, send: Send) -> Step:
        """Send fillers until one more long turn is too much. Returns the step as it continues from there; its own turn is long too."""
        self._wording.lengthen(label, self._filling.characters)
        before = await summary_calls(self._context, self._wording.marks)
        known = self._known(step)
        seen = await turns_before(self._record, step)
        size = await self._size_before(step)
        sent: list[str] = []
        while size < self._enough and len(sent) < self._room.get(label, self._filling.turns - 1):
            words = f"filler {len(sent) + 1} before {label}"
            self._wording.lengthen(words, self._filling.characters)
            filler = replace(step, params=self._params(step, sent, words), expect={}, during=(), at_once=1)
            exchange = await send(filler, words)
            if early := await self._compressed(exchange, before, known, seen):
                self._room[label] = len(sent)
                raise Untested(early)
            sent.append(words)
            step = self._after(step, exchange)
            size = await self._size(exchange)
        if _derived(step):
            self._wording.precede(label, sent)
        return step

    @property
    def _enough(self) -> int:
        """How many characters are enough; where the target counts turns, no number is."""
        return self._filling.characters * (self._filling.turns - 1) or sys.maxsize

    async def _size_before(self, step: Step) -> int:
        """How full the context is. If the last turn was compressed after its model saw everything, only that turn is left."""
        past = last_turn(self._record, step)
        compressed = past is not None and past.step.params.get("compress") and past.step.params.get("model") is None
        if past is not None and compressed and not await self._saw_new_summary(past):
            return self._filling.characters
        return await self._size(past)

    async def _saw_new_summary(self, turn: Exchange) -> bool:
        """Whether the model got a summary in this turn that is newer than the turn before."""
        call = await self._call(turn)
        before = [past for past in self._exchanges[: self._exchanges.index(turn)] if past.label]
        earlier = await self._call(before[-1]) if before else None
        summaries = [seen.call for seen in marks_in(call.messages) if seen.kind == "summary"] if call else []
        return max(summaries, default=0) > (earlier.number if earlier else 0)

    def _params(self, step: Step, sent: Sequence[str], words: str) -> dict[str, object]:
        manner: dict[str, Any] = {name: step.params[name] for name in _MANNER if name in step.params}
        history: Sequence[str] = step.params.get("history", ())  # type: ignore[assignment]
        if history or _derived(step):
            manner["history"] = [*history, *(sent if _derived(step) else ())]
        return {**manner, "say": words}

    def _after(self, step: Step, exchange: Exchange) -> Step:
        """A chain of responses continues from the filler; every other way to name the session stays the same."""
        if "previous_response_id" not in step.params or exchange.reading is None:
            return step
        return replace(step, params={**step.params, "previous_response_id": exchange.reading.id})

    async def _compressed(self, exchange: Exchange, before: int, known: frozenset[str], seen: frozenset[str]) -> str:
        """Why the target seems to have compressed during a filler; empty if it did not."""
        if not exchange.answer.accepted:
            got = exchange.answer.error or str(exchange.answer.outcome)
            raise Untested(f"the context could not be filled: a long turn was answered with {got}")
        others = set(exchange.answer.fields(self._context.target.header)) - known if known else set()
        if others or await summary_calls(self._context, self._wording.marks) > before:
            rotated = " (its answer carries another id)" if others else ""
            return f"the target compressed during {exchange.label}, before the turn under test{rotated}"
        await self._record.view(exchange)
        gone = [label for label in seen - set(exchange.seen or ()) if not self._record.may_be_gone(label)]
        if gone and truncates(self._record):
            return f"the target dropped {', '.join(sorted(gone))} during {exchange.label}, before the turn under test"
        return ""

    def _known(self, step: Step) -> frozenset[str]:
        """Every session id of this scenario so far; none where the fillers are its first turns."""
        revealed = {value for past in self._exchanges for value in past.answer.fields(self._context.target.header)}
        named = step.params.get("session")
        return frozenset(revealed | ({self._variables.text(named, "session", principal_of(step))} if named else set()))

    async def _size(self, exchange: Exchange | None) -> int:
        """How many characters of the conversation the model saw in a turn."""
        call = await self._call(exchange) if exchange is not None else None
        messages: Sequence[Mapping[str, object]] = call.messages if call is not None else ()
        return sum(len(content_text(each.get("content"))) for each in messages if each.get("role") != "system")

    async def _call(self, exchange: Exchange) -> ModelCall | None:
        number = call_of(exchange)
        return await observer(self._context).call(number) if number is not None else None


def _derived(step: Step) -> bool:
    """Whether only the body tells which conversation a step continues."""
    return step.verb == "chat" and "session" not in step.params

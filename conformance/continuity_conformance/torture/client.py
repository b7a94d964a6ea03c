"""A client of a campaign: it sends one turn after the other, and notes what it was told and what the model saw."""

import asyncio
import random
from contextlib import suppress
from dataclasses import replace
from typing import Final

from continuity_conformance.core.failure import Untested
from continuity_conformance.http.messages import Answer, Request, dig
from continuity_conformance.http.reading import Reading, read
from continuity_conformance.probe.marks import answer_mark, new_mark
from continuity_conformance.torture.audit.history import OF_THE_MODEL, Observation, WrongAnswer
from continuity_conformance.torture.conversation import Conversation, ConversationKind
from continuity_conformance.torture.moments import Moment, Trap
from continuity_conformance.torture.read_back import read_back
from continuity_conformance.torture.replica import Replica
from continuity_conformance.torture.slots import Slot
from continuity_conformance.torture.state import CampaignState
from continuity_conformance.torture.views import seen_by_model, summaries_in

_TRIES: Final = 8
_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 8.0
"""The eight tries take about 13 s: a disk that stands still for some seconds, on a busy machine, leaves no conversation stuck."""
_COMPRESSES: Final = 0.1
"""How many turns of a conversation that can be compressed are to compress it."""


class Client:
    """Sends turns until it is told to stop. `audited` is set when it has read a conversation back since the last start."""

    def __init__(self, state: CampaignState, slot: Slot, chance: random.Random) -> None:
        self._state = state
        self._slot = slot
        self._chance = chance
        self.trap: Trap | None = None
        self.audited = asyncio.Event()
        self.over = False

    @property
    def can_rotate(self) -> bool:
        """Whether its conversation can be compressed now."""
        return bool(self._slot.all) and self._can_rotate(self._slot.all[-1])

    @property
    def state(self) -> CampaignState:
        return self._state

    @property
    def slot(self) -> Slot:
        return self._slot

    async def run(self) -> None:
        while not self.over:
            conversation = self._slot.current()
            if not self.audited.is_set():
                await self._replica()
                await read_back(self._state, conversation)
            await self.turn(conversation)
            self.audited.set()

    async def turn(self, conversation: Conversation) -> bool:
        """Send one turn, again and again as long as it is refused or lost. True if it was answered."""
        mark, wait, tries, said = "", _FIRST_WAIT, 0, ""
        while tries < _TRIES:
            replica = await self._replica()
            mark = mark if mark and conversation.keyed else new_mark()
            events = len(self._state.journal.events)
            answer = await self._send(conversation, mark, replica)
            if answer is None:
                return True
            if self.over or conversation.is_lost_for_the_client:
                return False
            if len(self._state.journal.events) == events:  # nothing that was done to a process explains it
                tries, said = tries + 1, _short(answer)
                await asyncio.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
        conversation.stuck = (self._state.journal.now, f"{_TRIES} turns without an answer, the last: {said}")
        return False

    async def _replica(self) -> Replica:
        """A process that is up."""
        waits = [asyncio.ensure_future(replica.up.wait()) for replica in self._state.replicas]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return self._chance.choice([each for each in self._state.replicas if each.up.is_set()] or self._state.replicas)

    async def _send(self, conversation: Conversation, mark: str, replica: Replica) -> Answer | None:
        """Send one turn. Returns None if it was answered, else what came instead."""
        state, counts, trap = self._state, self._state.counts, self._take_trap(conversation)
        await self._may_compress(conversation, trap)
        # A turn that is sent again must be the same.
        stream = "streaming" in state.context.target.offers and int(mark, 16) % 2 == 1
        filling = state.context.target.profile.filling
        await self._slot.prepare(conversation, state.context)
        request = conversation.request(
            state.context, mark, stream=stream, replica=replica.number, characters=filling.characters if filling else 0
        )
        state.owners[mark] = conversation.name
        counts.turns += 1
        since = state.journal.now
        conversation.begin(mark, since)
        answer = await self._trapped(request, mark, replica, trap) if trap else await self._transmit(request)
        reading = read(conversation.verb, answer) if answer.accepted else None
        if reading is None or reading.flaw:
            self._note_failure(conversation, mark, answer)
            return answer
        counts.answered += 1
        session = next(iter(answer.fields(state.context.target.header)), "")
        conversation.answer(mark, state.journal.now, reading, session)
        counts.responses += conversation.verb == "respond"
        conversation.last_response = counts.responses
        self._observe(conversation, mark, since, reading, session)
        state.probe.forget(mark)
        return None

    def _take_trap(self, conversation: Conversation) -> Trap | None:
        trap, self.trap = self.trap, None
        if trap is not None and trap.moment is Moment.ROTATION and not self._can_rotate(conversation):
            self.trap, trap = trap, None  # it waits for a turn that can be compressed
        return trap

    def _can_rotate(self, conversation: Conversation) -> bool:
        return conversation.kind is ConversationKind.LONG or conversation.may_compress

    async def _may_compress(self, conversation: Conversation, trap: Trap | None) -> None:
        """Ask the target to compress in this turn, where it can be asked."""
        if self._chance.random() < _COMPRESSES or (trap is not None and trap.moment is Moment.ROTATION):
            await self.compress(conversation)

    async def compress(self, conversation: Conversation) -> None:
        """Ask the target to compress in the next turn of a conversation, where it can be asked."""
        if self._state.compresses and conversation.may_compress:
            conversation.compressed = True
            with suppress(Untested):
                await self._state.context.controls.compress(conversation.session, conversation.principal)
                self._state.counts.compressions += 1

    async def _transmit(self, request: Request) -> Answer:
        return await self._state.context.transport.send(request)

    async def _trapped(self, request: Request, mark: str, replica: Replica, trap: Trap) -> Answer:
        """Send a turn that a kill waits for."""
        probe = self._state.probe
        holds = await trap.script(mark, probe)
        request = trap.set(request, mark, replica.number, probe)
        holding = asyncio.create_task(trap.hold(mark, replica.number, probe)) if holds else None
        try:
            return await self._transmit(request)
        finally:
            if holding is not None:
                holding.cancel()
                await probe.release(mark)

    def _note_failure(self, conversation: Conversation, mark: str, answer: Answer) -> None:
        now, counts = self._state.journal.now, self._state.counts
        instead = counts.not_answered_with
        instead[_kind(answer)] = instead.get(_kind(answer), 0) + 1
        if 400 <= answer.status < 500 and not answer.error:  # noqa: PLR2004
            counts.refused += 1
            conversation.refuse(mark, now, _short(answer))
        else:
            counts.unanswered += 1
            # A stream that ends in good order without its last event is no answer either.
            conversation.lose(
                mark, now, answer if not answer.accepted else replace(answer, error="the answer is not complete")
            )
        if not conversation.keyed:
            self._state.probe.forget(mark)

    def _observe(self, conversation: Conversation, mark: str, since: float, reading: Reading, session: str) -> None:
        """Note what the model saw when it gave this answer."""
        probe = self._state.probe
        answered = answer_mark(reading.text, mark)
        call = probe.take(answered.call) if answered is not None and answered.mark == mark else None
        if call is None:
            if answered is None or answered.mark != mark:
                shown = f"to the turn {answered.mark}" if answered else "without a mark of the model"
                conversation.wrong_answers.append(WrongAnswer(mark, self._state.journal.now, shown))
            return
        summaries = summaries_in(call.messages)
        covered: frozenset[str] = frozenset().union(*map(probe.covered, summaries))
        conversation.compressed = conversation.compressed or bool(summaries)
        seen = seen_by_model(call.messages)
        self._state.counts.read_back += 1
        conversation.observations.append(
            Observation(OF_THE_MODEL, since, self._state.journal.now, seen, mark, covered, session)
        )


def _short(answer: Answer) -> str:
    code = dig(answer.body, "error", "code")
    return answer.error or " ".join(str(part) for part in (answer.status, code) if part)


def _kind(answer: Answer) -> str:
    """What came instead of an answer, without what is different every time."""
    if answer.timed_out:
        return "nothing in time"
    return "a lost connection" if answer.error else _short(answer)

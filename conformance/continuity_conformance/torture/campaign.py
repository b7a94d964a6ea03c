"""A campaign: clients send turns without a pause while the processes of the target are killed and started, and every conversation is audited."""

import asyncio
import itertools
import random
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from continuity_conformance.core.errors import NotStartedError
from continuity_conformance.torture.audit.checker import audit
from continuity_conformance.torture.audit.history import FoundViolation, Violation
from continuity_conformance.torture.client import Client
from continuity_conformance.torture.conversation import Conversation, ConversationKind, shared_kinds
from continuity_conformance.torture.migration import Migrations
from continuity_conformance.torture.moments import OF_A_TURN, WEIGHTS, Moment, Trap, delay_of
from continuity_conformance.torture.read_back import read_back
from continuity_conformance.torture.replica import KILL, TERMINATE, Replica
from continuity_conformance.torture.slots import Names, Slot
from continuity_conformance.torture.state import CampaignState

_INTERLUDES: Final = 0.1
"""How many kills have a SIGTERM before them, and how many a SIGSTOP."""
_LONGEST_PAUSE: Final = 0.4
_STARTS_IN_A_ROW: Final = 3
_SHARED: Final = 4
"""With at least so many clients, the last two share their conversations."""
_SMALL_CACHE: Final = 100


@dataclass(frozen=True, slots=True)
class Plan:
    """What the user asks for."""

    kills: int
    minutes: float
    seed: int
    clients: int
    replicas: int = 1
    stop_at_first: bool = False


@dataclass(slots=True)
class Progress:
    """How far a campaign is."""

    moments: Counter[str] = field(default_factory=Counter)
    terminations: int = 0
    pauses: int = 0
    findings: list[tuple[FoundViolation, Conversation]] = field(default_factory=list)
    stopped: bool = False
    """The user stopped it."""
    not_read_at_the_end: int = 0
    phase: str = "starting"
    killing_since: float = 0.0
    """When the first kill was due: the start of the target is no part of the time that the user allows."""

    @property
    def kills(self) -> int:
        return sum(self.moments.values())


class CrashCampaign:
    """Plays one campaign on a target that is up. `migrations`: None where the target has no old database to migrate."""

    def __init__(
        self,
        state: CampaignState,
        plan: Plan,
        progress: Progress,
        kinds: Sequence[ConversationKind],
        *,
        migrations: Migrations | None,
    ) -> None:
        self._state = state
        self._plan = plan
        self._chance = random.Random(f"continuity torture {plan.seed}")  # noqa: S311 - to repeat it, not for security
        self._migrations = migrations
        self.progress = progress
        self._kinds = tuple(kinds)
        self._began = state.journal.now
        self._clients = self._new_clients()
        self._old: list[Conversation] = []
        self.moments = self._offered_moments()

    @property
    def conversations(self) -> list[Conversation]:
        """Every conversation so far."""
        slots = dict.fromkeys(client.slot for client in self._clients)
        return [*(each for slot in slots for each in slot.all), *self._old]

    def _offered_moments(self) -> tuple[Moment, ...]:
        own_kill = any(replica.has_own_kill for replica in self._state.replicas)
        rotates = self._state.compresses or ConversationKind.LONG in self._kinds
        missing = set() if rotates else {Moment.ROTATION}
        missing |= set() if self._migrations is not None else {Moment.MIGRATION}
        missing |= {Moment.STOPPED} if own_kill else set()
        return tuple(moment for moment in WEIGHTS if moment not in missing)

    def _new_clients(self) -> list[Client]:
        context, count = self._state.context, self._plan.clients
        principals = sorted(context.target.profile.everyone) or ["alice"]
        numbers, names = itertools.count(1), Names(context, principals)
        both = shared_kinds(context)
        kinds = [kind for kind in self._kinds if kind not in both]
        shared = [kind for kind in self._kinds if kind in both] if count >= _SHARED or not kinds else []
        slots = [self._slot(kinds, principals, k, names, numbers) for k in range(count - (2 if shared else 0))]
        slots += [self._slot(shared, principals, count, names, numbers)] * 2 if shared else []
        return [Client(self._state, slot, self._child(f"client {k}")) for k, slot in enumerate(slots)]

    def _slot(
        self,
        kinds: Sequence[ConversationKind],
        principals: Sequence[str],
        number: int,
        names: Names,
        numbers: "itertools.count[int]",
    ) -> Slot:
        return Slot(kinds, principals[number % len(principals)], names, numbers, self._child(f"slot {number}"))

    def _child(self, name: str) -> random.Random:
        return random.Random(f"{self._plan.seed} {name}")  # noqa: S311 - as above

    # The campaign

    async def run(self) -> None:
        running = [asyncio.create_task(client.run()) for client in self._clients]
        try:
            self.progress.phase, self.progress.killing_since = "killing", self._began
            await self._audited()
            while self._goes_on():
                await self._round()
            self.progress.phase = "reading back"
            await self._finish(running)
        except NotStartedError as error:
            self._found(FoundViolation(Violation.NOT_STARTED, "the target", str(error), self._state.journal.now), None)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _goes_on(self) -> bool:
        done = self.progress.stopped or self.progress.kills >= self._plan.kills
        late = self._state.journal.now - self._began > self._plan.minutes * 60
        return not (done or late or (self._plan.stop_at_first and self.progress.findings))

    async def _round(self) -> None:
        """One kill, often with something before it."""
        chance, moments = self._chance, self.moments
        await self._some_turns()
        if chance.random() < _INTERLUDES:
            self.progress.terminations += 1
            await self._kill_one(Moment.RANDOM, TERMINATE)
        if Moment.STOPPED in moments and chance.random() < _INTERLUDES:
            self.progress.pauses += 1
            await chance.choice(self._state.replicas).pause(chance.uniform(0.01, _LONGEST_PAUSE))
        moment = chance.choices(moments, [WEIGHTS[each] for each in moments])[0]
        if moment is Moment.MIGRATION:
            await self._kill_migration()
        else:
            self.progress.moments[await self._kill_one(moment)] += 1
        self._audit(self._newest())

    async def _some_turns(self) -> None:
        wanted = self._state.counts.answered + self._chance.randint(0, 2 * self._plan.clients)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                while self._state.counts.answered < wanted:  # noqa: ASYNC110 - every client counts, and none is waited for
                    await asyncio.sleep(0.002)

    @property
    def _patience(self) -> float:
        return 2 + 2 * self._state.replicas[0].start_seconds

    async def _kill_one(self, moment: Moment, how: signal.Signals = KILL) -> Moment:
        """Kill a process and start it again. Returns the moment in which the kill came: one that did not come about is a random one."""
        replica = self._chance.choice(self._state.replicas)
        if moment in OF_A_TURN and how is KILL:
            replica = await self._trap(moment) or replica
        if moment is Moment.STOPPED:
            await replica.stop_now(self._chance.uniform(0.01, _LONGEST_PAUSE))
        await asyncio.sleep(self._chance.uniform(0, 0.02) if moment in {Moment.RANDOM, Moment.START} else 0)
        came = Moment(replica.moment) if replica.struck.is_set() else moment
        came = Moment.RANDOM if came in OF_A_TURN and not replica.struck.is_set() else came
        replica.strike(came, how)
        await self._recover(replica, how, starts=self._starts() if came is Moment.START else 0)
        return came

    def _starts(self) -> int:
        """How many starts are killed after this kill."""
        left = self._plan.kills - self.progress.kills - 1
        return min(self._chance.randint(1, _STARTS_IN_A_ROW), max(left, 0))

    async def _trap(self, moment: Moment) -> Replica | None:
        """Let the kill wait for a moment in a turn of one client. Returns the process that was struck; None if the moment did not come."""
        rotating = [client for client in self._clients if client.can_rotate]
        client = self._chance.choice((rotating if moment is Moment.ROTATION else None) or self._clients)
        client.trap = Trap(
            moment, delay_of(moment, self._chance), lambda number: self._by_number(number).strike(moment)
        )
        struck = {asyncio.ensure_future(replica.struck.wait()): replica for replica in self._state.replicas}
        done, waiting = await asyncio.wait(struck, timeout=self._patience, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()
        client.trap = self._state.probe.on_summary = None
        return struck[done.pop()] if done else None

    def _by_number(self, number: int) -> Replica:
        return self._state.replicas[number - 1]

    async def _recover(self, replica: Replica, how: signal.Signals, *, starts: int) -> None:
        """Wait for the end, start again, and wait until every client has read its conversation back."""
        for client in self._clients:
            client.audited.clear()
        await replica.ended(how)
        ended = self._state.journal.now
        for _ in range(starts):
            await replica.begin_start_and_kill(self._chance.uniform(0, 1.1 * replica.start_seconds))
            self.progress.moments[Moment.START] += 1
        await replica.start(lambda: self._settle(ended))
        await self._audited()

    def _settle(self, ended: float) -> None:
        for conversation in self._newest():
            conversation.processes_ended(ended)

    async def _audited(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(4 * self._state.context.target.profile.limits.turn_seconds):
                await asyncio.gather(*(client.audited.wait() for client in self._clients))

    async def _kill_migration(self) -> None:
        assert self._migrations is not None, "it is chosen only where there are migrations"
        self.progress.moments[Moment.MIGRATION] += 1
        conversations = await self._migrations.kill_one()
        self._audit(conversations)
        self._old += [each for each in conversations if each.broken]

    # The audit

    def _newest(self) -> list[Conversation]:
        """The conversations that may have changed since the last kill."""
        return [each for slot in dict.fromkeys(client.slot for client in self._clients) for each in slot.all[-3:]]

    def _audit(self, conversations: Sequence[Conversation]) -> None:
        for conversation in conversations:
            if not conversation.broken:
                found = audit(conversation.history(), self._state.probe.asked, self._state.owners)
                conversation.broken = bool(found)
                for finding in found:
                    self._found(finding, conversation)

    def _found(self, finding: FoundViolation, conversation: Conversation | None) -> None:
        known = conversation or Conversation(ConversationKind.HEADER, 0, "alice", "", self._chance)
        self.progress.findings.append((finding, known))

    async def _finish(self, running: Sequence["asyncio.Task[None]"]) -> None:
        """Read every conversation back once more, those that nobody has used for long too."""
        for client in self._clients:
            client.over = True
        await asyncio.gather(*running, return_exceptions=True)
        sound = [each for each in self.conversations if not each.broken and each.stuck is None and each.answered]
        left = [each for each in sound if self._is_kept(each)]
        self.progress.not_read_at_the_end = len(sound) - len(left)
        waiting = iter(left if not self.progress.stopped else ())
        for client in self._clients:
            client.over = False
        await asyncio.gather(*(self._read_all(client, waiting) for client in self._clients))
        self._audit(self.conversations)

    async def _read_all(self, client: Client, waiting: Iterator[Conversation]) -> None:
        for conversation in waiting:  # one iterator for all clients
            await read_back(self._state, conversation)
            await client.turn(conversation)

    def _is_kept(self, conversation: Conversation) -> bool:
        """Whether the target must still have the responses of a conversation: it may evict those that it has not used for long."""
        profile = self._state.context.target.profile
        cache = profile.shared_responses or _SMALL_CACHE
        recent = self._state.counts.responses - conversation.last_response < cache // 2
        return conversation.verb == "chat" or not profile.evicts or recent

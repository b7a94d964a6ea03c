"""Sets up a campaign: the model, the processes of the target, what the target offers. Plays it, and takes everything down again."""

import asyncio
import itertools
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Final

from continuity_conformance.core.errors import NotStartedError, UsageError
from continuity_conformance.http.client import Transport
from continuity_conformance.http.connect import must_answer
from continuity_conformance.http.tls import trust
from continuity_conformance.probe.server import listening
from continuity_conformance.run.calibrate import assumed, calibrate
from continuity_conformance.scenario.context import Context
from continuity_conformance.target.controls import Controls
from continuity_conformance.target.profile import Profile
from continuity_conformance.target.resolve import ResolvedTarget
from continuity_conformance.target.server import Server, start_server
from continuity_conformance.torture.audit.journal import Journal
from continuity_conformance.torture.calm import wrong_when_calm
from continuity_conformance.torture.campaign import CrashCampaign, Plan, Progress
from continuity_conformance.torture.client import Client
from continuity_conformance.torture.conversation import ConversationKind, kinds_of, shared_kinds
from continuity_conformance.torture.migration import Migrations
from continuity_conformance.torture.moments import Moment
from continuity_conformance.torture.probe import CampaignProbe
from continuity_conformance.torture.replica import Replica
from continuity_conformance.torture.result import CampaignResult
from continuity_conformance.torture.slots import Names, Slot
from continuity_conformance.torture.state import CampaignState, Counts

_TURNS_OF_A_TRIAL: Final = 8


@dataclass(slots=True)
class Stage:
    """One campaign from its start to its result. `progress` and `counts` can be read while it is played."""

    target: ResolvedTarget
    plan: Plan
    progress: Progress
    counts: Counts
    journal: Journal

    async def play(self) -> CampaignResult:
        """Raises ContinuityError if the target cannot be started or examined."""
        profile = self.target.profile
        _require_control(self.target, self.plan)
        async with AsyncExitStack() as stack:
            transport = await stack.enter_async_context(
                Transport(profile.limits.turn_seconds, trust(profile.ca), balanced=profile.balanced)
            )
            probe = CampaignProbe(profile.summary)
            url = await stack.enter_async_context(listening(probe))
            server = await self._server(profile, url, stack)
            context = _context(server, transport, probe)
            await must_answer(server.url, profile.ca)
            dialogue = await calibrate(context)
            if context.target.observed != "probe":
                return self._result(
                    context, (), "what the model saw cannot be observed: its answers do not come from the probe model"
                )
            if dialogue.untested:
                return self._result(context, (), f"the first turns did not succeed: {dialogue.untested[0]}")
            await self._twins(server)
            state = self._new_state(context, server, probe)
            rotation = await self._rotation(state)
            state = replace(state, compresses=not rotation and context.controls.filling is None)
            kinds, left_out = await self._kinds(state, rotates=not rotation)
            if not kinds:
                return self._result(context, (), f"no kind of conversation is sound without a kill: {left_out[0]}")
            migrations, unmigrated = await self._migrations(state, url, stack)
            campaign = CrashCampaign(state, self.plan, self.progress, kinds, migrations=migrations)
            await campaign.run()
            left_out += [f"{Moment.ROTATION}: {rotation}"] if rotation else []
            left_out += [f"{Moment.MIGRATION}: {unmigrated}"] if unmigrated else []
            return self._result(context, campaign.moments, "", left_out)

    async def _kinds(self, state: CampaignState, *, rotates: bool) -> tuple[list[ConversationKind], list[str]]:
        """The kinds of conversations that are sound without a kill, and what is wrong with the others."""
        context = state.context
        long = [ConversationKind.LONG] if rotates and not state.compresses else []
        kinds = [*kinds_of(context), *shared_kinds(context), *long]
        wrong = await wrong_when_calm(state, kinds)
        self.progress.findings += wrong.values()
        told = [f"{kind}: it is wrong without any kill ({found.violation})" for kind, (found, _) in wrong.items()]
        return [kind for kind in kinds if kind not in wrong], told

    async def _server(self, profile: Profile, url: str, stack: AsyncExitStack) -> Server:
        server = await start_server(profile, url, several=self.plan.replicas > 1)
        stack.push_async_callback(server.stop)
        return server

    async def _twins(self, server: Server) -> None:
        assert server.started is not None, "the kit starts the target"
        server.twins = [server.started.twin() for _ in range(self.plan.replicas - 1)]
        await asyncio.gather(*(twin.start() for twin in server.twins))

    def _new_state(self, context: Context, server: Server, probe: CampaignProbe) -> CampaignState:
        assert server.started is not None, "the kit starts the target"
        processes = (server.started, *server.twins)
        replicas = [Replica(k, each, context.controls, self.journal) for k, each in enumerate(processes, 1)]
        for replica in replicas:
            replica.up.set()
        return CampaignState(context, probe, tuple(replicas), self.journal, self.counts, {})

    async def _rotation(self, state: CampaignState) -> str:
        """Compress a conversation, to learn whether that works here. Returns why it does not, or an empty text."""
        context, filling = state.context, state.context.controls.filling
        if "compression" not in context.target.offers or "compress" not in context.controls.available:
            return "the target offers no compression, or nothing makes it compress"
        if context.target.options["compaction"] == "truncate":
            return "the target drops old turns without a summary"
        kind = ConversationKind.LONG if filling is not None else ConversationKind.HEADER
        if ConversationKind.HEADER not in kinds_of(context):
            return "the target has no sessions that a header names"
        chance = random.Random(0)  # noqa: S311 - nothing depends on it
        slot = Slot((kind,), "alice", Names(context, ["alice"]), itertools.count(0), chance)
        client = Client(replace(state, compresses=filling is None), slot, chance)
        conversation = slot.current()
        for _ in range(_TURNS_OF_A_TRIAL):
            await client.turn(conversation)
            await client.compress(conversation)
        proved = any(observation.summarised for observation in conversation.observations)
        return "" if proved else "the target was to compress, and the model saw no summary afterwards"

    async def _migrations(self, state: CampaignState, url: str, stack: AsyncExitStack) -> tuple[Migrations | None, str]:
        """Migrations to kill, or the reason why there are none."""
        profile = state.context.target.profile
        if not profile.legacy or not state.context.target.takes_slugs:
            return None, "the profile names no database that the target migrates (`legacy`), or it takes no slugs"
        server = await self._server(profile, url, stack)
        assert server.started is not None, "the kit starts the target"
        context = replace(state.context, server=server, controls=_controls(server, state.context))
        replica = Replica(1, server.started, context.controls, self.journal)
        replica.up.set()
        own = replace(state, context=context, replicas=(replica,), compresses=False)
        chance = random.Random(f"{self.plan.seed} migrations")  # noqa: S311 - to repeat it
        migrations = Migrations(own, server, chance)
        try:
            wrong = await migrations.wrong_when_calm()
        except NotStartedError as error:
            return None, f"the target does not start on an old database: {error.what}"
        self.progress.findings += [wrong] if wrong else []
        return (None, f"it is wrong without any kill ({wrong[0].violation})") if wrong else (migrations, "")

    def _result(
        self, context: Context, moments: Sequence[str], untested: str, left_out: Sequence[str] = ()
    ) -> CampaignResult:
        return CampaignResult.of(
            self.plan, self.progress, self.counts, self.journal, context.target, moments, untested, left_out
        )


def _require_control(target: ResolvedTarget, plan: Plan) -> None:
    if target.profile.process is None:
        raise UsageError(
            "The kit did not start this target, so it cannot kill it.",
            where=target.name,
            do="Give a target by its name, or a profile that has `process:`.",
        )
    if plan.replicas > 1 and "kill" in target.profile.controls:
        raise UsageError(
            "A target with its own control `kill` can have one process only.",
            where=target.name,
            do="Leave --replicas out.",
        )


def _controls(server: Server, context: Context) -> Controls:
    return Controls(server, context.transport, has_api=context.target.has_api)


def _context(server: Server, transport: Transport, probe: CampaignProbe) -> Context:
    target = assumed(server.profile)
    bounded = transport.at_most(server.profile.limits.at_once)
    controls = Controls(server, bounded, has_api=target.has_api)
    return Context(target, server, bounded, controls, probe, {}, {})

"""The scheduler: decides when and on which server each scenario plays, and collects its evidence. Everything runs on one event loop.

Calm scenarios run side by side on shared servers, within the profile's limits. Disturbing ones get a server of their own where the kit can start
several; otherwise they run one at a time, after the calm ones.
"""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from typing import Any, Final

from continuity_conformance.checks.registry import CAMPAIGN_CHECKS, DISTURBING, IN_SEQUENCES, PACED
from continuity_conformance.core.budget import Budget
from continuity_conformance.core.errors import ContinuityError, UnreachableError
from continuity_conformance.core.verdicts import Evidence, Result, Verdict
from continuity_conformance.http.client import Transport
from continuity_conformance.http.connect import must_answer
from continuity_conformance.http.tls import trust
from continuity_conformance.probe.client import RemoteProbe
from continuity_conformance.probe.server import Probe, listening
from continuity_conformance.results.outcome import Played, fewest, result
from continuity_conformance.results.redaction import Redactor
from continuity_conformance.run.always import judge_always
from continuity_conformance.run.applicability import obstacle_to, scenarios, without_steps
from continuity_conformance.run.calibrate import assumed, calibrate
from continuity_conformance.run.player import (
    PlayLog,
    ScenarioPlay,
    ScenarioPlayer,
    ScenarioRun,
    Stopwatch,
    group_of,
    noted,
)
from continuity_conformance.run.servers import PARTS, ExclusiveServers, SharedServers
from continuity_conformance.scenario.context import Context, Observer
from continuity_conformance.scenario.doubt import Doubt
from continuity_conformance.target.controls import Controls
from continuity_conformance.target.resolve import ResolvedTarget
from continuity_conformance.target.response_cache import ResponseCache
from continuity_conformance.target.server import Server, start_server
from continuity_conformance.target.shared_restart import PausingRestarts, SharedRestarts, can_share
from continuity_spec import Requirement, Scenario
from continuity_spec.derivation import derive, salted

_RESPONSES_OF_A_CHECK: Final = 60
"""More than any check in Python stores, unless it makes room for each response itself (`PACED`)."""


class Scheduler:
    """Open it once for a run, then `play` the requirements in any order, also at the same time."""

    def __init__(self, target: ResolvedTarget, redactor: Redactor, budget: Budget | None = None) -> None:
        profile = target.profile
        self._budget = (budget or Budget()).capped(profile.limits.examples)
        self._profile = profile
        self._url = target.url
        self._again = target.arguments
        self._stack = AsyncExitStack()
        self._model = AsyncExitStack()
        self._servers: list[Server] = []
        self._labels: dict[str, str] = {}
        self.decided: dict[str, Result] = {}
        self.plays = PlayLog(self._budget.examples, max(1, profile.limits.parallel // PARTS))
        self._player = ScenarioPlayer(target.arguments, redactor, self._budget)
        self._alone = asyncio.Lock()
        self._starting = asyncio.Lock()
        self._restarts = SharedRestarts(self._restart)
        self._restarted: Context | None = None
        self._restarted_cache = ResponseCache(profile.shared_responses)
        self._exclusive = (
            ExclusiveServers(lambda: self._server(alone=True), profile.limits.disturbed) if profile.process else None
        )
        self._roomy = ExclusiveServers(self._server, 1)
        self._redactor = redactor
        self.context: Context
        self._shared: SharedServers

    async def open(self) -> None:
        """Start the probe and the target where the kit starts it, connect, and calibrate."""
        self._transport = await self._stack.enter_async_context(
            Transport(self._profile.limits.turn_seconds, trust(self._profile.ca), balanced=self._profile.balanced)
        )
        self._observer: Observer | None = None
        self._probe_url = self._profile.probe
        if self._profile.process is not None:
            probe = Probe(self._profile.summary)
            self._probe_url = await self._model.enter_async_context(listening(probe))
            self._observer = probe
        elif self._profile.probe:
            self._observer = await self._stack.enter_async_context(
                RemoteProbe(self._profile.probe, self._profile.summary)
            )
        server = await self._server() if self._profile.process else Server(self._url, self._profile)
        self.context = self._context(server)
        await must_answer(server.url, self._profile.ca)
        dialogue = await calibrate(self.context)
        self.context = self._context(server, self.context, cache=ResponseCache(self._profile.shared_responses))
        limits = self._profile.limits
        self._shared = SharedServers(
            self.context, self._another, limits.servers if self._profile.process else 1, limits.parallel
        )
        # A server that only echoes the header answers these two turns too: they prove something only where the model was observed.
        proves = not dialogue.untested and self.context.target.observed != "nothing"
        verdict = Verdict.PASS if proves else Verdict.NOT_TESTED
        self._player.played.append(Played(dialogue, Evidence("calibration", "", verdict)))

    async def close(self) -> None:
        """Stop the model first: a target that still waits for an answer of it would take its whole time-out to stop."""
        await self._model.aclose()
        await asyncio.gather(*(server.stop() for server in self._servers))
        await self._stack.aclose()

    async def play(self, requirement: Requirement, calm_done: asyncio.Event) -> Result:
        """Play a requirement that has scenarios or a Python check, and return its result."""
        watch = Stopwatch()
        outcomes = await asyncio.gather(
            *(self._scenario(requirement, scenario, watch, calm_done) for scenario in scenarios(requirement))
        )
        return result(requirement, [evidence for outcome in outcomes for evidence in outcome], watch.seconds)

    async def judge_always(self, requirement: Requirement) -> Result:
        """Judge an `always` entry on every answer of the run."""
        obstacle = obstacle_to(self.context, requirement, without_steps(requirement))
        if obstacle is not None:
            return result(requirement, [Evidence("", "", *obstacle)], 0.0)
        judged = judge_always(requirement, self._player.played, self.decided.values(), self._redactor, self._again)
        return result(requirement, await judged, 0.0)

    # Scenarios

    async def _scenario(
        self, requirement: Requirement, scenario: Scenario, watch: Stopwatch, calm_done: asyncio.Event
    ) -> list[Evidence]:
        obstacle = obstacle_to(self.context, requirement, scenario)
        if obstacle is not None:
            return [Evidence(scenario.name, "", *obstacle)]
        runs = [ScenarioRun(requirement, scenario, example, watch) for example in self._examples(scenario)]
        runs *= scenario.copies
        group = group_of(requirement, scenario, started=self._exclusive is not None)
        plays = [self.plays.add(ScenarioPlay(requirement.id, group)) for _ in runs]
        if "evict-by-pressure" in scenario.controls:
            for play in plays:
                play.work.plan(self._profile.limits.responses)
        if scenario.disturbing or requirement.check in DISTURBING:
            return await asyncio.gather(*map(noted, plays, [self._disturb(run, calm_done) for run in runs]))
        return fewest(await asyncio.gather(*map(noted, plays, map(self._play_calm, runs))))

    def _examples(self, scenario: Scenario) -> Sequence[Mapping[str, Any]]:
        """On a target that may hold old sessions, the openings of test vectors get a salt, and the kit derives their ids itself."""
        examples: Sequence[Mapping[str, Any]] = scenario.examples or ({},)
        if scenario.vectors is None or not self.context.server.may_hold_sessions:
            return examples
        salt, version = secrets.token_hex(8), self.context.target.options["derivation"]
        return [_salted(example, salt, version) if "messages" in example else example for example in examples]

    async def _play_calm(self, run: ScenarioRun) -> Evidence:
        """Play beside others; again and alone where a failure may be the kit's fault."""
        servers = self._shared
        async with self._lease_calm(run) as context:
            evidence, doubt = await self._player.play(run, context, shared=True)
        if doubt is None:
            return evidence
        async with servers.lease_alone() as context:
            return await self._player.play_again(run, context, evidence, doubt)

    def _lease_calm(self, run: ScenarioRun) -> AbstractAsyncContextManager[Context]:
        servers, check = self._shared, run.requirement.check
        if check in IN_SEQUENCES:
            return servers.lease_places()
        if run.seeded:
            return servers.lease_random(sharing=check in CAMPAIGN_CHECKS)
        return servers.lease(self._responses_of(run))

    def _responses_of(self, run: ScenarioRun) -> int:
        """How many responses a scenario stores at most."""
        check = run.requirement.check
        if check is None:
            return sum(self._profile.stored_responses(step) for step in run.scenario.steps)
        return 0 if check in PACED else _RESPONSES_OF_A_CHECK

    async def _disturb(self, run: ScenarioRun, calm_done: asyncio.Event) -> Evidence:
        """Play alone: on a server of its own, or on the only one after the calm scenarios."""
        if self._exclusive is None:
            await calm_done.wait()
            async with self._alone:
                evidence, doubt = await self._player.play(run, self.context, shared=True)
                return await self._player.play_again(run, self.context, evidence, doubt) if doubt else evidence
        try:
            if can_share(run.scenario.controls):
                evidence, doubt = await self._play_restarting(run)
            else:
                async with self._exclusive_to(run).lease() as server:
                    evidence, doubt = await self._player.play(run, self._context(server, self.context), shared=False)
            if doubt is None:
                return evidence
            async with self._exclusive_to(run).lease() as server:
                return await self._player.play_again(run, self._context(server, self.context), evidence, doubt)
        except UnreachableError:
            raise
        except ContinuityError as error:
            return Evidence(run.scenario.name, "", Verdict.ERROR, str(error))

    def _exclusive_to(self, run: ScenarioRun) -> ExclusiveServers:
        """Sequences with restarts play side by side, so they need the larger cache of a shared server."""
        assert self._exclusive is not None, "the kit starts the target"
        return self._roomy if run.requirement.check in IN_SEQUENCES else self._exclusive

    async def _play_restarting(self, run: ScenarioRun) -> tuple[Evidence, Doubt | None]:
        """Play on the server whose restarts are shared; the first scenario starts it. Waiting for a restart is not the time of a scenario."""
        async with self._restarted_cache.lease(self._responses_of(run)), self._restarts.playing():
            async with self._starting:
                if self._restarted is None:
                    self._restarted = self._context(
                        await self._server(), self.context, self._restarts, self._restarted_cache
                    )
            restarted = self._restarted
            controls = restarted.controls.with_shared_restarts(PausingRestarts(self._restarts, run.watch.paused))
            return await self._player.play(run, replace(restarted, controls=controls), shared=True)

    async def _restart(self) -> None:
        assert self._restarted is not None, "a restart comes after the start"
        await self._restarted.controls.restart_now()

    # Servers

    async def _another(self, cache: ResponseCache) -> Context:
        return self._context(await self._server(), self.context, cache=cache)

    async def _server(self, *, alone: bool = False) -> Server:
        server = await start_server(self._profile, self._probe_url, alone=alone)
        self._servers.append(server)
        return server

    def _context(
        self,
        server: Server,
        like: Context | None = None,
        shared: SharedRestarts | None = None,
        cache: ResponseCache | None = None,
    ) -> Context:
        """A context on a server. `cache`: room for responses, where scenarios share the server."""
        target = like.target if like else assumed(self._profile)
        limits = self._profile.limits
        # Scenarios that share restarts all play at once: the server restarts only when each of them waits for it.
        transport = self._transport.at_most(max(limits.parallel, limits.at_once)) if shared else self._transport
        controls = Controls(server, self._transport, has_api=target.has_api, shared=shared)
        return Context(
            target,
            server,
            transport,
            controls,
            self._observer,
            self._labels,
            self.decided,
            self._budget,
            cache or ResponseCache(),
        )


def _salted(example: Mapping[str, Any], salt: str, version: str) -> dict[str, Any]:
    messages = salted(example["messages"], salt)
    return {**example, "messages": messages, "id": derive(version, messages)}

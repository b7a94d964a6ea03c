"""The dialogue: plays a scenario step by step and writes its record; `expect.judge` reads the record.

Expectations are judged in written order, once the step and all its parallel parts are over.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final

from continuity_conformance.core.failure import Inapplicable, Unmet, Untested
from continuity_conformance.http.messages import Answer, dig
from continuity_conformance.http.reading import read
from continuity_conformance.probe.script import Script
from continuity_conformance.scenario.context import Context, Observer
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.expect.judge import judge
from continuity_conformance.scenario.fill_context import Fillers, Room
from continuity_conformance.scenario.foreign_ids import refuses_form
from continuity_conformance.scenario.interventions import Interventions, made_step
from continuity_conformance.scenario.observe import observer
from continuity_conformance.scenario.record import Record
from continuity_conformance.scenario.request_builder import (
    CLIENT_TOOL,
    new_slug_request,
    plain_request,
    principal_of,
    turn_request,
)
from continuity_conformance.scenario.simultaneous import may_meet, meeting
from continuity_conformance.scenario.variables import Variables
from continuity_conformance.scenario.wording import Wording
from continuity_spec import Step
from continuity_spec.flow_yaml import flow_yaml

_TURNS: Final = frozenset({"chat", "respond"})
_BUSY: Final = 409
_BUSY_WAIT: Final = 0.05
_SHOWN: Final = 160
_FIRST_PIECE_WAIT: Final = 1.0
"""Seconds to wait for the first event of a stream before the model goes on. A target that does not stream sends nothing in this time."""
_PIECE_WAIT: Final = 0.1
"""Seconds for the target to notice that the first piece of an answer is there, before the model goes on."""
_HANG_UP_WAIT: Final = 1.0
"""Seconds for the target to notice that a client which waits for its answer is gone, before the model answers. Some look for that only twice a second."""
_ARRIVAL_WAIT: Final = 0.3
"""Seconds for a turn to reach the target, where it waits for another turn of its session."""
_EARLY: Final = "early"
"""`hang_up: early`: the client of a stream does not wait for its first event."""
_HUNG_UP: Final = Answer(error="the client hung up on purpose")

_SCRIPTS: Final = {
    "fails": Script(fails=True),
    "rate limited": Script(limited=True),
    "breaks off": Script(breaks_off=True),
    "breaks off once": Script(breaks_off=True, once=True),
    "gives no finish_reason": Script(breaks_off=True, ends=True),
    "summary fails": Script(summary_fails=True),
    "calls client": Script(tool=CLIENT_TOOL, arguments='{"word": "red"}'),
    "calls client twice": Script(tool=CLIENT_TOOL, arguments='{"word": "red"}', second_tool=CLIENT_TOOL),
    "calls client as before": Script(tool=CLIENT_TOOL, arguments='{"word": "red"}', same_id=True),
    "says and calls client": Script(tool=CLIENT_TOOL, arguments='{"word": "red"}', speaks=True),
    "pauses": Script(pauses=True),
    "streams slowly": Script(slowly=True),
    "says nothing": Script(silent=True),
    "stops early": Script(cut_short=True),
}


class Dialogue:
    """Plays one scenario, or one example of it, once."""

    def __init__(self, context: Context, example: Mapping[str, object], room: Room | None = None) -> None:
        self.record = Record.begin(context, example)
        self.description = str(example.get("description", ""))
        self.interventions = Interventions(self.record)
        self._room = {} if room is None else room
        self._slug_creation = asyncio.Lock()
        self._steps_done = 0

    @property
    def context(self) -> Context:
        return self.record.context

    @property
    def variables(self) -> Variables:
        return self.record.variables

    @property
    def wording(self) -> Wording:
        return self.record.wording

    @property
    def exchanges(self) -> list[Exchange]:
        return self.record.exchanges

    @property
    def untested(self) -> list[str]:
        return self.record.untested

    async def play(self, steps: Sequence[Step]) -> None:
        """Play all steps. Raises Unmet at the first expectation that does not hold."""
        for number, step in enumerate(steps, 1):
            await self.step(step, str(number))
        await self.interventions.verify()

    async def leave(self) -> None:
        """Undo what must not outlive the scenario."""
        await self.interventions.undo()

    @asynccontextmanager
    async def compressing(self, name: str, say: str) -> AsyncIterator[None]:
        """For a Python check: the turn with the label `say` that the block sends makes the target compress this session."""
        step = await self._with_full_context(made_step("chat", {"session": name, "stream": True}), "compressing", say)
        asked = await self.interventions.compress(lambda: self._session_of(step), step, "", say)
        yield
        await self.interventions.verify_compression(asked)

    @asynccontextmanager
    async def holding(self, verb: str, expect: Mapping[str, object], **params: object) -> AsyncIterator[None]:
        """For a Python check: the model holds its answer to this turn while the block lasts."""
        probe, mark = observer(self.context), self.wording.mark(str(params["say"]))
        await probe.script(mark, Script(held=True))
        turn = asyncio.create_task(self.do(verb, expect, **params))
        arrived = asyncio.create_task(_arrival(probe, mark))
        try:
            await asyncio.wait({turn, arrived}, return_when=asyncio.FIRST_COMPLETED)
            yield
        finally:
            arrived.cancel()
            await probe.release(mark)
            await asyncio.gather(turn, return_exceptions=True)
        await turn

    def move_to(self, context: Context) -> None:
        """For a Python check: continue on another server."""
        self.record.context = context
        self.interventions = Interventions(self.record)

    async def do(self, verb: str, expect: Mapping[str, object] | None = None, **params: object) -> Exchange:
        """For a Python check: one turn or request, written like a step of the vocabulary."""
        self._steps_done += 1
        return (await self.step(made_step(verb, params, expect), str(self._steps_done)))[-1]

    async def step(self, step: Step, number: str) -> list[Exchange]:
        """Perform one step and judge it."""
        try:
            performed = await self._perform(step, number, alone=True)
        except Unmet as failure:
            raise failure.at(expectation="", step=step.text, number=number) from None
        try:
            for done, exchanges in performed:
                await self._judge_or_leave(done, number, exchanges)
        except Unmet:
            await self.interventions.require_proof()  # what was not compressed says nothing about compression
            raise
        return [exchange for _, exchanges in performed for exchange in exchanges]

    async def _judge_or_leave(self, step: Step, number: str, exchanges: Sequence[Exchange]) -> None:
        """Judge a step. What the previous release does wrong says nothing about this one."""
        try:
            await self.judge(step, number, exchanges)
        except Unmet as failure:
            if any(refuses_form(self.context.target, exchange, self.exchanges) for exchange in exchanges):
                raise Inapplicable(
                    "the target demands ids of another form (`ids` of the profile), and refuses this one"
                ) from None
            if self.context.server.this_release is None:
                raise
            raise Untested(f"the previous release: expected {failure.expected}, actual {failure.actual}") from None

    async def judge(self, step: Step, number: str, exchanges: Sequence[Exchange]) -> None:
        """Judge a step, and keep what its expectations captured. Raises Unmet at the first that does not hold."""
        judgement = await judge(self.record, step, number, exchanges)
        self.variables.merge(judgement.variables)
        self.untested.extend(judgement.untested)

    async def _perform(self, step: Step, number: str, *, alone: bool) -> list[tuple[Step, list[Exchange]]]:
        if step.verb == "together":
            parts = [self._perform(part, f"{number}.{k}", alone=False) for k, part in enumerate(step.together, 1)]
            async with meeting(self.context, self._marks_of(step.together)):
                return [pair for pairs in await asyncio.gather(*parts) for pair in pairs]
        if step.verb in _TURNS:
            return [(step, await self._turns(step, number, alone=alone))]
        if step.verb in {"get", "delete", "request"}:
            return [(step, [await self._send(step, number)])]
        await self.interventions.do(step, number)
        return []

    async def _turns(self, step: Step, number: str, *, alone: bool) -> list[Exchange]:
        if step.at_once == 1:
            turn = (
                self._held(step, number)
                if step.during
                else self._turn(step, number, str(step.params.get("say", "")), alone)
            )
            return [await turn]
        say, labels = str(step.params["say"]), self._labels_of(step)
        turns = (self._turn(self._copy(step, k), number, label, alone=False) for k, label in enumerate(labels))
        async with meeting(self.context, self._marks_of([step]) if alone else ()):
            exchanges = await asyncio.gather(*turns)
        self.record.copies[say] = [exchange.label for exchange in exchanges if exchange.answer.accepted]
        return list(exchanges)

    def _copy(self, step: Step, number: int) -> Step:
        """One copy of a turn. With `server: each` the copies go to all processes in turn."""
        if step.params.get("server") != "each":
            return step
        servers = 1 + len(self.context.server.twins)
        return replace(step, params={**step.params, "server": 1 + number % servers})

    def _labels_of(self, step: Step) -> list[str]:
        """The labels of a turn: its own, or those of its copies."""
        say, copies = str(step.params.get("say", "")), min(step.at_once, self.context.target.profile.limits.at_once)
        return [say] if step.at_once == 1 else [f"{say}/{k}" for k in range(1, copies + 1)]

    def _marks_of(self, steps: Sequence[Step]) -> list[str]:
        """The marks of turns that are sent at once, and may wait for each other at the model."""
        return [self.wording.mark(label) for step in steps if may_meet(step) for label in self._labels_of(step)]

    async def _held(self, step: Step, number: str) -> Exchange:
        """The model holds its answer while the steps of `during` play; it is released on failure too."""
        label = str(step.params["say"])
        mark = self.wording.mark(label)
        probe = observer(self.context)
        pauses = step.params.get("model") == "pauses"
        await probe.script(mark, Script(pauses=pauses, held=not pauses))
        turn = asyncio.create_task(self._turn(step, number, label, alone=True))
        arrived = asyncio.create_task(_arrival(probe, mark))
        waiting: list[asyncio.Task[list[Exchange]]] = []
        try:
            await asyncio.wait({turn, arrived}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(_PIECE_WAIT if pauses else 0)
            for k, inner in enumerate(step.during, 1):
                await self._play_during(inner, f"{number}.{k}", waiting)
        finally:
            arrived.cancel()
            await probe.release(mark)
            exchange = await turn
        await asyncio.gather(*waiting)
        return exchange

    async def _play_during(self, step: Step, number: str, waiting: list[asyncio.Task[list[Exchange]]]) -> None:
        """Play a step while the model holds another turn. One that `waits` for that turn only gets some time to arrive."""
        playing = asyncio.create_task(self.step(step, number))
        if step.params.get("waits") is True and "hang_up" not in step.params:
            waiting.append(playing)
            await asyncio.wait({playing}, timeout=_ARRIVAL_WAIT)
        else:
            await playing

    async def _turn(self, step: Step, number: str, label: str, alone: bool) -> Exchange:
        """One turn. A turn sent alone that the target may refuse under load is repeated until it is accepted or time is up."""
        label = str(step.params.get("returns", label))  # `returns: X` sends the result of the tool call in turn X
        compresses = step.params.get("compress") is True
        step = await self._with_full_context(step, number, label) if compresses else step
        content = self._content(step, label)
        await self._make_slug(step)
        await self._script(step, number, label)
        session = partial(self._session_of, step)
        asked = await self.interventions.compress(session, step, number, label) if compresses else None
        request = turn_request(self.context, self.variables, step, content)
        killed = step.params.get("kill") is True
        request = replace(request, on_answer=self.context.controls.kill_at_once) if killed else request
        deadline = time.monotonic() + self.context.target.profile.limits.turn_seconds
        exchange = await self._send_turn(step, number, request, label)
        while alone and self._comes_again(step, exchange) and time.monotonic() < deadline:
            await asyncio.sleep(_BUSY_WAIT)
            exchange = await self._exchange(step, number, request, label)
        if killed:
            await self.interventions.do(made_step("kill", {}), number)
        if asked is not None and exchange.answer.accepted:
            # Only an accepted turn can have compressed; a refused one fails its own expectation.
            await self.interventions.verify_compression(asked, exchange)
        if self.record.compacted:
            await self.interventions.look_for_proof(exchange)
        if "model" in step.params and not step.during and not self._stays_full(step):
            await self._script_probe(step.params["model"], label, Script())
        return exchange

    def _comes_again(self, step: Step, exchange: Exchange) -> bool:
        """Whether a turn is repeated: its session is busy on a target that rejects such turns, or the target is at the limit that it declares."""
        target, answer = self.context.target, exchange.answer
        if step.params.get("waits") is True:
            return False  # its session stays busy until this turn is answered
        rejects = target.options["turns"] == "reject" and step.expect.get("status") != _BUSY
        return (rejects and _is_busy(answer)) or ("model" not in step.params and target.profile.limits.allow(answer))

    async def _make_slug(self, step: Step) -> None:
        """Create a slug on its first use, for a target that accepts only slugs it created itself."""
        slug, principal = step.params.get("conversation"), principal_of(step)
        slug = slug.get("id") if isinstance(slug, Mapping) else slug
        if (
            self.context.target.profile.slugs != "made"
            or not isinstance(slug, str)
            or self.variables.known(slug) is not None
        ):
            return
        async with self._slug_creation:
            if self.variables.known(slug) is None:
                answer = await self.context.transport.send(new_slug_request(self.context, principal))
                made = dig(answer.body, "id")
                if not answer.accepted or not isinstance(made, str):
                    raise Untested(f"no slug could be made: {answer.error or answer.status} {answer.text[:_SHOWN]}")
                self.variables.capture(slug, "slug", principal, made)

    def _stays_full(self, step: Step) -> bool:
        """After a failed summary the context is still full, so the target tries again in every turn. The summary keeps failing until a step compresses."""
        return step.params["model"] == "summary fails" and self.context.controls.filling is not None

    async def _with_full_context(self, step: Step, number: str, label: str) -> Step:
        """If this target compresses only when its context is full, fill it first. Returns the step to play afterwards."""
        filling = self.context.controls.filling
        if filling is None:
            return step
        observer(self.context)  # without the probe nothing shows whether the target compressed
        await self._script_probe("summary fails", label, Script())

        async def speak(filler: Step, words: str) -> Exchange:
            request = turn_request(self.context, self.variables, filler, self._content(filler, words))
            return await self._exchange(filler, f"{number} {words}", request, words)

        fillers = Fillers(self.record, filling, self._room)
        return await fillers.fill(step, label, speak)

    async def _send_turn(self, step: Step, number: str, request: Any, label: str) -> Exchange:
        if not request.hang_up:
            return await self._exchange(step, number, request, label)
        if step.params.get("waits") is True:
            return await self._exchange(step, number, request, label, self._give_up)
        streams = step.params.get("stream") and step.params["hang_up"] != _EARLY
        hang_up = self._hung_up if streams else self._abandoned
        return await hang_up(step, number, request, label)

    async def _abandoned(self, step: Step, number: str, request: Any, label: str) -> Exchange:
        """The client hangs up while the model holds its answer."""
        if self.context.target.observed != "probe":
            raise Untested("the target's model is not the probe model, so it cannot hold an answer back")
        return await self._exchange(step, number, request, label, partial(self._hang_up, self.wording.mark(label)))

    async def _give_up(self, request: Any) -> Answer:
        """The client disconnects while its turn waits for another one."""
        sending = asyncio.create_task(self.context.transport.send(request))
        await asyncio.wait({sending}, timeout=_ARRIVAL_WAIT)
        answer = sending.result() if sending.done() else _HUNG_UP
        sending.cancel()
        await asyncio.sleep(_HANG_UP_WAIT)
        return answer

    async def _hang_up(self, mark: str, request: Any) -> Answer:
        probe = observer(self.context)
        await probe.script(mark, Script(held=True))
        sending = asyncio.create_task(self.context.transport.send(request))
        arrived = asyncio.create_task(_arrival(probe, mark))
        try:
            await asyncio.wait({sending, arrived}, return_when=asyncio.FIRST_COMPLETED)
            answer = sending.result() if sending.done() else _HUNG_UP
            sending.cancel()
            await asyncio.sleep(_HANG_UP_WAIT)
        finally:
            arrived.cancel()
            await probe.release(mark)
        await probe.script(mark, Script())
        return answer

    async def _hung_up(self, step: Step, number: str, request: Any, label: str) -> Exchange:
        """The client hangs up after the first event, while the model is still answering."""
        if self.context.target.observed != "probe":
            return await self._exchange(step, number, request, label)
        probe, mark = observer(self.context), self.wording.mark(label)
        await probe.script(mark, Script(pauses=True))
        turn = asyncio.create_task(self._exchange(step, number, request, label))
        arrived = asyncio.create_task(_arrival(probe, mark))
        try:
            await asyncio.wait({turn, arrived}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({turn}, timeout=_FIRST_PIECE_WAIT)
            await asyncio.sleep(_PIECE_WAIT)
        finally:
            arrived.cancel()
            await probe.release(mark)
            exchange = await turn
        await probe.script(mark, Script())
        return exchange

    async def _exchange(
        self, step: Step, number: str, request: Any, label: str, send: Callable[[Any], Awaitable[Answer]] | None = None
    ) -> Exchange:
        at = self.record.log.elapsed
        answer = await (send or self.context.transport.send)(request)
        if step.verb == "respond":
            answer = replace(answer, failed=dig(answer.body, "status") == "failed")
        reading = read(step.verb, answer, hung_up=request.hang_up) if answer.accepted and step.verb in _TURNS else None
        mark = self.wording.mark(label) if label else ""
        broken = frozenset(self.context.server.broken)
        exchange = Exchange(
            step, number, step.verb, principal_of(step), request, answer, at, label, mark, reading, broken=broken
        )
        self.exchanges.append(exchange)
        if label and reading is not None:
            self.wording.answered(label, reading)
        if step.params.get("model") == "says nothing":
            self.record.silent_marks.add(mark)
        if mark and not answer.accepted and answer is not _HUNG_UP:
            self.record.failed_marks.add(mark)
        return exchange

    async def _send(self, step: Step, number: str) -> Exchange:
        exchange = await self._exchange(step, number, plain_request(self.context, self.variables, step), "")
        if step.verb == "get" and "session" in step.params and exchange.answer.accepted:
            body = self.context.target.profile.session(exchange.answer.body)
            exchange.answer = replace(exchange.answer, body=body)
        return exchange

    def _content(self, step: Step, label: str) -> dict[str, object]:
        """The content of a turn: messages as written, an input, or the messages for its label."""
        if "messages" in step.params:
            return {"messages": self.variables.fill(step.params["messages"])}
        if step.verb == "respond":
            in_items = {"returns", "history"} & step.params.keys()
            said = self.wording.items(step.params, label) if in_items else self.wording.user_text(label)
            return {"input": said, **self.wording.instructions(step.params)}
        return {"messages": self.wording.messages(step.params, label)}

    # What the model does

    async def _script(self, step: Step, number: str, label: str) -> None:
        model = step.params.get("model")
        if model is not None and not step.during:
            self.wording.mark(label)
            self.record.log.intervention(
                number, f"model: {flow_yaml(model)}", "the probe model does so when it is asked"
            )
            await self._script_probe(model, label, self._as_script(model))

    async def _script_probe(self, model: object, label: str, script: Script) -> None:
        """Script the probe. A summarising call contains marks of earlier turns; any other call is recognised by its newest mark."""
        marks = self.wording.marks if model == "summary fails" else {self.wording.mark(label)}
        for mark in marks:
            await observer(self.context).script(mark, script)

    def _as_script(self, model: object) -> Script:
        profile = self.context.target.profile
        match model:
            case str():
                return _SCRIPTS[model]
            case {"writes": note, **more} if profile.writes:
                script = self._tool_script(profile.writes.name, profile.writes.arguments, note)
                return replace(script, second_tool=CLIENT_TOOL if more else "")
            case {"reads": note} if profile.reads:
                return self._tool_script(profile.reads.name, profile.reads.arguments, note)
        raise Untested("the profile names no tool of the target that writes and reads")

    def _tool_script(self, tool: str, arguments: str, note: object) -> Script:
        value = self.variables.text(note)
        return Script(tool=tool, arguments=arguments.replace("{name}", f"{value}.txt").replace("{content}", value))

    def _session_of(self, step: Step) -> str:
        """The session of a turn: the one it names, else the one that the target last revealed for its slug or response, or at all."""
        if "session" in step.params:
            return self.variables.text(step.params["session"], "session", principal_of(step))
        past = [*reversed(self.exchanges)]
        past = [exchange for exchange in past if self._continues(step, exchange)] or past
        told = [value for exchange in past for value in exchange.answer.fields(self.context.target.header)]
        if not told:
            raise Untested("the session to compress is not known: the target reveals none")
        return told[0]

    def _continues(self, step: Step, exchange: Exchange) -> bool:
        """Whether a turn continues the slug or the response of an earlier exchange."""
        slug, previous = step.params.get("conversation"), step.params.get("previous_response_id")
        if exchange.principal != principal_of(step) or exchange.reading is None:
            return False
        same_slug = slug is not None and exchange.step.params.get("conversation") == slug
        return same_slug or (previous is not None and self.variables.known(str(previous)) == exchange.reading.id)


def _is_busy(answer: Answer) -> bool:
    """Whether the session is busy. A 409 that says `X-Should-Retry: false`, as clients of OpenAI read it, is about something else."""
    return answer.status == _BUSY and answer.fields("X-Should-Retry") != ["false"]


async def _arrival(probe: Observer, mark: str) -> None:
    await probe.arrived(mark)

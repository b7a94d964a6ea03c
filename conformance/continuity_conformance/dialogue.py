"""The dialogue: a scenario as it is played, step by step.

It performs steps and keeps what was said; `expectations` judges. Expectations are checked in written order, once the step and all its parallel
parts are over.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Any, Final

from continuity_conformance.answers import read
from continuity_conformance.failure import Unmet, Untested
from continuity_conformance.filling import Fillers, Room
from continuity_conformance.interventions import Interventions, made_step
from continuity_conformance.judge import Judge
from continuity_conformance.names import Names
from continuity_conformance.notes import Notes
from continuity_conformance.observation import call_of, find_view, observer, times_asked
from continuity_conformance.probe import Script
from continuity_conformance.requests import (
    CLIENT_TOOL,
    new_slug_request,
    plain_request,
    principal_of,
    turn_request,
)
from continuity_conformance.speech import Speech
from continuity_conformance.stage import Exchange, Observer, Stage
from continuity_conformance.transport import dig
from continuity_conformance.views import View, turns
from continuity_spec import Step
from continuity_spec.flow_yaml import flow_yaml

_TURNS: Final = frozenset({"chat", "respond"})
_BUSY: Final = 409
_BUSY_WAIT: Final = 0.05
_SHOWN: Final = 160
_FIRST_PIECE_WAIT: Final = 1.0
"""A target that passes pieces on has sent its first event by then; one that does not is hung up on when it is done."""

_SCRIPTS: Final = {
    "fails": Script(fails=True),
    "rate limited": Script(limited=True),
    "breaks off": Script(breaks_off=True),
    "summary fails": Script(summary_fails=True),
    "calls client": Script(tool=CLIENT_TOOL, arguments='{"word": "red"}'),
}


class Dialogue:
    """One playing of one scenario (or of one example of it)."""

    def __init__(self, stage: Stage, example: Mapping[str, object], room: Room | None = None) -> None:
        self.stage = stage
        self.description = str(example.get("description", ""))
        self._room = {} if room is None else room
        self.names = Names(example, stage.constants)
        self.exchanges: list[Exchange] = []
        self.notes = Notes()
        self.untested: list[str] = []
        self.copies: dict[str, list[str]] = {}
        self.failed_marks: set[str] = set()
        self.speech = Speech(stage.labels)
        self.interventions = Interventions(stage, self.names, self.speech, self.notes)
        self._making = asyncio.Lock()
        self._steps_done = 0

    async def play(self, steps: Sequence[Step]) -> None:
        """Play all steps. Raises Unmet at the first expectation that does not hold."""
        for number, step in enumerate(steps, 1):
            await self.step(step, str(number))
        await self.interventions.verify()

    async def leave(self) -> None:
        """Undo what must not outlast the scenario."""
        await self.interventions.undo()

    @asynccontextmanager
    async def compressing(self, name: str, say: str) -> AsyncIterator[None]:
        """For a Python check: the target compresses this session in the turn of the block, which says this."""
        step = await self._filled(made_step("chat", {"session": name, "stream": True}), "compressing", say)
        asked = await self.interventions.compress(lambda: self._session_of(step), step, "")
        yield
        await self.interventions.verify_compression(asked)

    def move_to(self, stage: Stage) -> None:
        """For a Python check: go on at another server."""
        self.stage = stage
        self.interventions = Interventions(stage, self.names, self.speech, self.notes)

    async def do(self, verb: str, expect: Mapping[str, object] | None = None, **params: object) -> Exchange:
        """One turn or request of a Python check, in the words of the vocabulary."""
        self._steps_done += 1
        return (await self.step(made_step(verb, params, expect), str(self._steps_done)))[-1]

    async def step(self, step: Step, number: str) -> list[Exchange]:
        """Do one step, and judge it."""
        try:
            performed = await self._perform(step, number, alone=True)
        except Unmet as trouble:
            raise trouble.at(expectation="", step=step.text, number=number) from None
        for done, exchanges in performed:
            await Judge(self, done, number, exchanges).judge()
        return [exchange for _, exchanges in performed for exchange in exchanges]

    async def _perform(self, step: Step, number: str, *, alone: bool) -> list[tuple[Step, list[Exchange]]]:
        if step.verb == "together":
            parts = [self._perform(part, f"{number}.{k}", alone=False) for k, part in enumerate(step.together, 1)]
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
        say = str(step.params["say"])
        labels = [f"{say}/{k}" for k in range(1, min(step.at_once, self.stage.target.profile.limits.at_once) + 1)]
        exchanges = await asyncio.gather(*(self._turn(step, number, label, alone=False) for label in labels))
        self.copies[say] = [exchange.label for exchange in exchanges if exchange.answer.accepted]
        return list(exchanges)

    async def _held(self, step: Step, number: str) -> Exchange:
        """The model holds its answer while the steps of `during` are done; it is released on failure too."""
        label = str(step.params["say"])
        mark = self.speech.mark(label)
        probe = observer(self.stage)
        await probe.script(mark, Script(held=True))
        turn = asyncio.create_task(self._turn(step, number, label, alone=True))
        arrived = asyncio.create_task(_arrival(probe, mark))
        try:
            await asyncio.wait({turn, arrived}, return_when=asyncio.FIRST_COMPLETED)
            for k, inner in enumerate(step.during, 1):
                await self.step(inner, f"{number}.{k}")
        finally:
            arrived.cancel()
            await probe.release(mark)
            exchange = await turn
        return exchange

    async def _turn(self, step: Step, number: str, label: str, alone: bool) -> Exchange:
        """One turn. A lone turn waits out a 409 where the target rejects turns of a busy session."""
        label = str(step.params.get("returns", label))
        compresses = step.params.get("compress") is True
        step = await self._filled(step, number, label) if compresses else step
        content = self._content(step, label)
        await self._make_slug(step)
        await self._script(step, number, label)
        session = partial(self._session_of, step)
        asked = await self.interventions.compress(session, step, number) if compresses else None
        request = turn_request(self.stage, self.names, step, content)
        waits = alone and self.stage.target.options["turns"] == "reject" and step.expect.get("status") != _BUSY
        deadline = time.monotonic() + self.stage.target.profile.limits.turn_seconds
        exchange = await (self._hung_up if request.hang_up else self._exchange)(step, number, request, label)
        while waits and exchange.answer.status == _BUSY and time.monotonic() < deadline:
            await asyncio.sleep(_BUSY_WAIT)
            exchange = await self._exchange(step, number, request, label)
        if asked is not None and exchange.answer.accepted:
            # A turn that was not accepted is a failure to be seen; only one that was can have compressed.
            await self.interventions.verify_compression(asked)
        if "model" in step.params and not self._stays_full(step):
            await self._tell_probe(step.params["model"], label, Script())
        return exchange

    async def _make_slug(self, step: Step) -> None:
        """Where a slug must be made before it is used, its first use makes it."""
        slug, principal = step.params.get("conversation"), principal_of(step)
        slug = slug.get("id") if isinstance(slug, Mapping) else slug
        if self.stage.target.profile.slugs != "made" or not isinstance(slug, str) or self.names.known(slug) is not None:
            return
        async with self._making:
            if self.names.known(slug) is None:
                answer = await self.stage.transport.send(new_slug_request(self.stage, principal))
                made = dig(answer.body, "id")
                if not answer.accepted or not isinstance(made, str):
                    raise Untested(f"no slug could be made: {answer.error or answer.status} {answer.text[:_SHOWN]}")
                self.names.capture(slug, "slug", principal, made)

    def _stays_full(self, step: Step) -> bool:
        """A context that was filled is still full when its summary failed: the target tries again each turn, and shall fail until a step compresses."""
        return step.params["model"] == "summary fails" and self.stage.controls.filling is not None

    async def _filled(self, step: Step, number: str, label: str) -> Step:
        """The step as it goes on once the context is full, where that is what makes the target compress."""
        filling = self.stage.controls.filling
        if filling is None:
            return step
        observer(self.stage)  # without it nobody could tell whether the target compressed
        await self._tell_probe("summary fails", label, Script())

        async def speak(filler: Step, words: str) -> Exchange:
            request = turn_request(self.stage, self.names, filler, self._content(filler, words))
            return await self._exchange(filler, f"{number} {words}", request, words)

        fillers = Fillers(self.stage, self.names, self.speech, self.exchanges, filling, self._room)
        return await fillers.fill(step, label, speak)

    async def _hung_up(self, step: Step, number: str, request: Any, label: str) -> Exchange:
        """The client is gone after the first event, while the model is still in the middle of its answer."""
        if self.stage.target.observed != "probe":
            return await self._exchange(step, number, request, label)
        probe, mark = observer(self.stage), self.speech.mark(label)
        await probe.script(mark, Script(pauses=True))
        turn = asyncio.create_task(self._exchange(step, number, request, label))
        arrived = asyncio.create_task(_arrival(probe, mark))
        try:
            await asyncio.wait({turn, arrived}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({turn}, timeout=_FIRST_PIECE_WAIT)
        finally:
            arrived.cancel()
            await probe.release(mark)
            exchange = await turn
        await probe.script(mark, Script())
        return exchange

    async def _exchange(self, step: Step, number: str, request: Any, label: str) -> Exchange:
        at = self.notes.elapsed
        answer = await self.stage.transport.send(request)
        reading = read(step.verb, answer, hung_up=request.hang_up) if answer.accepted and step.verb in _TURNS else None
        mark = self.speech.mark(label) if label else ""
        broken = frozenset(self.stage.server.broken)
        exchange = Exchange(
            step, number, step.verb, principal_of(step), request, answer, at, label, mark, reading, broken=broken
        )
        self.exchanges.append(exchange)
        if label and reading is not None:
            self.speech.answered(label, reading)
        if mark and not answer.accepted:
            self.failed_marks.add(mark)
        return exchange

    async def _send(self, step: Step, number: str) -> Exchange:
        exchange = await self._exchange(step, number, plain_request(self.stage, self.names, step), "")
        if step.verb == "get" and "session" in step.params and exchange.answer.accepted:
            shown = self.stage.target.profile.session(exchange.answer.body)
            exchange.answer = replace(exchange.answer, body=shown)
        return exchange

    def _content(self, step: Step, label: str) -> dict[str, object]:
        """What a turn says: verbatim messages, an input, or the messages of its label."""
        if "messages" in step.params:
            return {"messages": self.names.fill(step.params["messages"])}
        if step.verb == "respond":
            return {"input": self.speech.user_text(label)}
        return {"messages": self.speech.messages(step.params, label)}

    # What the model does and saw

    async def _script(self, step: Step, number: str, label: str) -> None:
        model = step.params.get("model")
        if model is not None:
            self.speech.mark(label)
            self.notes.intervention(number, f"model: {flow_yaml(model)}", "the probe model does so when it is asked")
            await self._tell_probe(model, label, self._as_script(model))

    async def _tell_probe(self, model: object, label: str, script: Script) -> None:
        """A summarising call has marks of any earlier turn in it; every other call is known by its newest one."""
        marks = self.speech.marks if model == "summary fails" else {self.speech.mark(label)}
        for mark in marks:
            await observer(self.stage).script(mark, script)

    def _as_script(self, model: object) -> Script:
        profile = self.stage.target.profile
        match model:
            case str():
                return _SCRIPTS[model]
            case {"writes": note, **more} if profile.writes:
                script = self._tool_script(profile.writes.name, profile.writes.arguments, note)
                return replace(script, beside=CLIENT_TOOL if more else "")
            case {"reads": note} if profile.reads:
                return self._tool_script(profile.reads.name, profile.reads.arguments, note)
        raise Untested("the profile names no tool of the target's that writes and reads")

    def _tool_script(self, tool: str, arguments: str, note: object) -> Script:
        value = self.names.text(note)
        return Script(tool=tool, arguments=arguments.replace("{name}", f"{value}.txt").replace("{content}", value))

    async def view(self, exchange: Exchange) -> View:
        """What the model saw in the call whose answer the client got."""
        if exchange.view is None:
            exchange.view = await find_view(self.stage, exchange)
            exchange.seen = tuple(turns(exchange.view, self.speech.label, failed=frozenset(self.failed_marks)))
            exchange.summarised = tuple(sorted(self.speech.label(mark) for mark in exchange.view.summarised))
            exchange.replays = self._replayed(exchange)
        return exchange.view

    def _replayed(self, exchange: Exchange) -> str:
        """The step that has had this answer already; empty where the model was called for this one."""
        before = takewhile(lambda past: past is not exchange, self.exchanges)
        call = call_of(exchange)
        return next((past.number for past in before if call is not None and call_of(past) == call), "")

    async def times_asked(self, label: str) -> int:
        return await times_asked(self.stage, self.speech.mark(label))

    def _session_of(self, step: Step) -> str:
        """The session that a turn goes to: the one it names, else the one that the target told last for its slug or response, or at all."""
        if "session" in step.params:
            return self.names.text(step.params["session"], "session", principal_of(step))
        past = [*reversed(self.exchanges)]
        past = [exchange for exchange in past if self._goes_on_from(step, exchange)] or past
        told = [value for exchange in past for value in exchange.answer.fields(self.stage.target.header)]
        if not told:
            raise Untested("the session to compress is not known: the target tells none")
        return told[0]

    def _goes_on_from(self, step: Step, exchange: Exchange) -> bool:
        """Whether a turn names the slug of an earlier one, or its response."""
        slug, previous = step.params.get("conversation"), step.params.get("previous_response_id")
        if exchange.principal != principal_of(step) or exchange.reading is None:
            return False
        same_slug = slug is not None and exchange.step.params.get("conversation") == slug
        return same_slug or (previous is not None and self.names.known(str(previous)) == exchange.reading.id)


async def _arrival(probe: Observer, mark: str) -> None:
    await probe.arrived(mark)

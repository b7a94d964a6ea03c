"""Interventions: what a scenario does to the target between turns, and the proof that it really happened.

A control is verified: an eviction counts when the response is gone, a compression when the model got a summarising call, or no longer
sees the turns that it saw before.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from continuity_conformance.core.errors import NotStartedError
from continuity_conformance.core.failure import Unmet, Untested
from continuity_conformance.http.messages import Answer, Request
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.observe import summary_calls
from continuity_conformance.scenario.record import Intervention, Record
from continuity_conformance.scenario.request_builder import plain_request, principal_of, turn_request
from continuity_conformance.scenario.same_conversation import same_names, turns_before
from continuity_conformance.target.control_context import how
from continuity_conformance.target.old_database import OldRow
from continuity_spec import Place, Step

_OLD_KINDS: Final[Mapping[str, str]] = {"conversation": "slug", "response": "response", "session": "session"}
_NOWHERE: Final = Place("", 1, 1)
_GONE: Final = frozenset({400, 404, 410})
_SHOWN: Final = 200
_LAST_ONES: Final = 5
"""How many responses are stored by real turns after a control filled the cache, so that the target itself evicts."""
_NO_SUMMARY: Final = "the target did not compress: the model got no summarising call (`summary:` in the profile names what such a call says, if it is not recognised), and still saw every turn verbatim"
_NO_CALL: Final = "the model got no summarising call, so none could fail"
_BY_PROCESS: Final[Mapping[str, str]] = {
    "restart": "SIGTERM to its process, then a new one was started",
    "kill": "SIGKILL to its process, then a new one was started",
    "legacy": "its process was ended, its database replaced by an old one, and then started anew",
    "replicas": "more processes were started in the folder of the first one",
    "start_previous": "its process was ended, and that of its previous release started without any data",
    "upgrade": "the process of the previous release was ended, and this release started on its data",
}
"""How the kit itself intervenes in a target that it started."""


def made_step(verb: str, params: Mapping[str, object], expect: Mapping[str, object] | None = None) -> Step:
    """A step that is not written in a file."""
    shown = ", ".join(f"{name}: {_brief(value)}" for name, value in params.items())
    return Step(verb, params, expect or {}, 1, (), (), _NOWHERE, f"{verb} {{{shown}}}")


def _brief(value: object) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


@contextmanager
def _not_starting_is_a_finding(step: str) -> Iterator[None]:
    """During a scenario, a target that does not start again is a failure of the target."""
    try:
        yield
    except NotStartedError as error:
        raise Unmet("a target that comes up", str(error), expectation="start", step=step) from None


@dataclass(frozen=True, slots=True)
class AwaitedCompression:
    """A compression that the next turn should cause.

    `calls_before`: the number of summarising calls before it. `seen_before`: the turns of the conversation so far that the model saw.
    `marks`: all turns so far. `note`: its log entry.
    """

    calls_before: int
    note: Intervention
    step: Step
    label: str
    seen_before: frozenset[str]
    marks: frozenset[str]
    exchanges: int


class Interventions:
    """Performs the interventions of one scenario; each is logged before it is done."""

    def __init__(self, record: Record) -> None:
        self._context = record.context
        self._variables = record.variables
        self._wording = record.wording
        self._log = record.log
        self._record = record
        self._evicted: list[str] = []
        self._unproven: list[AwaitedCompression] = []
        self._calls_before: int | None = None
        """How many summarising calls there were before a control asked for a compression."""

    async def do(self, step: Step, number: str = "") -> None:
        """Perform a step that is neither a turn nor a request. It fails if the target does not start again."""
        note = self._log.intervention(number, step.text, self._how(step.verb))
        with _not_starting_is_a_finding(step.text):
            await self._do(step, note)

    def _how(self, verb: str) -> str:
        own, started = self._context.target.profile.controls.get(verb), self._context.server.started
        if own is None or started is None or verb not in _BY_PROCESS:
            return _BY_PROCESS.get(verb, "")
        return f"{how(own, {'pid': started.pid})}; then a new one was started"

    async def _do(self, step: Step, note: Intervention) -> None:
        match step.verb:
            case "restart":
                await self._context.controls.restart()
            case "kill":
                await self._context.controls.kill()
            case "legacy" if "add" in step.params:
                note.how = "in the statements of the old schema, while the target runs"
                await self._add_legacy(step)
            case "legacy":
                await self._legacy(step.params)
            case "replicas":
                await self._context.controls.replicas(int(str(step.params["servers"])))
            case "start_previous":
                await self._context.controls.start_previous()
            case "upgrade":
                await self._context.controls.upgrade()
            case _:
                note.how = await self._control(step)

    async def _control(self, step: Step) -> str:
        """Use a control; returns how it was done."""
        controls, params, principal = self._context.controls, step.params, principal_of(step)
        match step.verb:
            case "break_store":
                return await controls.break_store(str(params["what"]), principal)
            case "mend_store":
                return await controls.mend_store(principal)
            case "evict":
                return await self._evict(step)
        filled: Any = self._variables.fill(params["params"], "session")
        if params["name"] == "compress":
            self._calls_before = await summary_calls(self._context, self._wording.marks)
            self._may_replace(self._wording.marks, len(self._record.exchanges))
        return await controls.named(str(params["name"]), filled, principal)

    def _may_replace(self, marks: frozenset[str], exchanges: int) -> None:
        """Note that a compression after so many exchanges may replace the turns with these marks."""
        self._record.compacted.update(dict.fromkeys(marks - set(self._record.compacted), exchanges))

    async def verify(self) -> None:
        """Verify evictions, once and at the end: reading a response refreshes the cache. And compressions that only later turns could prove."""
        if self._unproven:
            raise Untested(_NO_SUMMARY)
        for response in self._evicted:
            request = self._look_for(response)
            answer = await self._context.transport.send_repeatable(request)
            if answer.status not in _GONE:
                raise Untested(
                    f"the target still has the response that was evicted ({request.method} gives {answer.status})"
                )

    def _look_for(self, response: str) -> Request:
        """A request that a target refuses if it does not have the response: GET, or a turn where the target has no GET."""
        if "stored-responses" in self._context.target.offers:
            return plain_request(self._context, self._variables, made_step("get", {"response": response}))
        step = made_step("respond", {"previous_response_id": response, "store": False, "say": "look"})
        return turn_request(self._context, self._variables, step, {"input": self._wording.user_text("look")})

    async def undo(self) -> None:
        """Undo what must not outlive the scenario."""
        if self._context.server.broken:
            await self._context.controls.mend_store("alice")
        await self._context.server.leave_previous_release()
        await self._context.server.stop_twins()

    async def compress(self, session: Callable[[], str], step: Step, number: str, label: str) -> AwaitedCompression:
        """Ask the target to compress in its next turn.

        A target whose context is filled (`filling`) needs no request: its next turn is too much for it.
        """
        self._must_have("compress")
        before = await summary_calls(self._context, self._wording.marks)
        seen = await turns_before(self._record, step)
        note = self._log.intervention(number, "compress: true")
        filling = self._context.controls.filling
        if filling is None:
            note.how = await self._context.controls.compress(session(), principal_of(step))
        else:
            long = f" of {filling.characters} characters" if filling.characters else ""
            note.how = f"the context is filled with turns{long}, the next one is too much"
        marks = self._wording.marks - {self._wording.mark(label)}
        return AwaitedCompression(before, note, step, label, seen, marks, len(self._record.exchanges))

    async def verify_compression(self, asked: AwaitedCompression, exchange: Exchange | None = None) -> None:
        """Prove a compression by a summarising call, or by what the model saw. Without a call, a later turn may be the proof."""
        summarised = await summary_calls(self._context, self._wording.marks) > asked.calls_before
        if asked.step.params.get("model") != "summary fails":
            self._may_replace(asked.marks, asked.exchanges)
        elif not summarised:
            raise Untested(_NO_CALL)
        else:
            self._record.quotable.update(asked.marks)
        if not summarised and self._record.model_summarised:
            raise Untested(_NO_SUMMARY)  # a target that asked the model before asks it again
        if summarised:
            self._record.model_summarised = True
            asked.note.proof = "the target then asked the model for a summary"
            return
        self._unproven.append(asked)
        if exchange is not None:
            await self.look_for_proof(exchange)

    async def look_for_proof(self, exchange: Exchange) -> None:
        """Compressions that no call proves are proved by a turn in which the model no longer sees what it saw before."""
        if self._unproven and exchange.answer.accepted:
            with suppress(Unmet, Untested):
                await self._record.view(exchange)
            self._unproven = [asked for asked in self._unproven if not _shows(exchange, asked)]

    async def require_proof(self) -> None:
        """For a step that failed: raise Untested if a compression that was asked for is not proved."""
        before = self._calls_before
        if self._unproven or (before is not None and await summary_calls(self._context, self._wording.marks) == before):
            raise Untested(_NO_SUMMARY)

    async def kill(self) -> None:
        """For a Python check: SIGKILL, start, ready."""
        self._must_have("kill")
        await self.do(made_step("kill", {}))

    async def start_and_kill(self, rows: Sequence[Mapping[str, Any]], starts: float) -> None:
        """Start on an old database, kill during the migration, start again. `starts`: when to kill, as a multiple of a normal start time."""
        self._must_have("legacy")
        does = f"an old database with {len(rows)} rows, a start that is killed in its middle, another start"
        killed = f"SIGKILL when {starts:g} of the time of a start had passed since it touched the database"
        self._log.intervention("", does, killed)
        with _not_starting_is_a_finding("start again"):
            await self._context.server.kill_during_start([self.old_row(row) for row in rows], starts)

    async def _evict(self, step: Step) -> str:
        response = self._variables.text(step.params["response"], "response")
        by_pressure = step.params.get("by") == "pressure"
        how_done = await (self._press() if by_pressure else self._context.controls.evict(response, principal_of(step)))
        self._evicted.append(response)
        return how_done

    async def _press(self) -> str:
        """Store more responses than the target's cache holds. Where a control fills the cache, only the last responses are real turns."""
        limits, controls = self._context.target.profile.limits, self._context.controls
        there = max(0, limits.responses - _LAST_ONES) if "fill" in self._context.target.profile.controls else 0
        filling = {"responses": there}
        filled = [await controls.named("fill", filling, "alice")] if there else []
        labels = [f"filler {k}" for k in range(limits.responses - there + 1)]
        for first in range(0, len(labels), limits.at_once):
            answers = await asyncio.gather(*map(self._fill, labels[first : first + limits.at_once]))
            if refused := [answer for answer in answers if not answer.accepted]:
                # A cache that never became full evicted nothing, which proves nothing about the target.
                got = refused[0].error or refused[0].status
                raise Untested(f"the cache could not be filled: a response was answered with {got}")
        stored = f"{len(labels)} responses stored on top, in a cache that holds {limits.responses}"
        return "; then ".join((*filled, stored))

    async def _fill(self, label: str) -> Answer:
        content = {"input": self._wording.user_text(label)}
        request = turn_request(self._context, self._variables, made_step("respond", {"say": label}), content)
        return await self._context.transport.send_repeatable(request)

    async def _legacy(self, params: Mapping[str, Any]) -> None:
        rows: Sequence[Mapping[str, Any]] = params["rows"]
        self._must_have("legacy")
        await self._context.controls.legacy([self.old_row(row) for row in rows], params.get("servers", 1))

    async def _add_legacy(self, step: Step) -> None:
        """Write rows while the target runs. A statement of the old schema that the new schema refuses is a failure of the target."""
        rows: Any = step.params["rows"]
        try:
            await self._context.controls.add_legacy([self.old_row(row) for row in rows])
        except sqlite3.Error as error:
            raise Unmet("statements of the old schema accepted", str(error), expectation="writer") from None

    def old_row(self, row: Mapping[str, Any]) -> OldRow:
        named = {kind: self._variables.text(row[field], kind) for field, kind in _OLD_KINDS.items() if field in row}
        history = self._wording.made_up(row.get("turns", ()))
        data: Any = self._variables.fill(row.get("data", ""))
        raw, fields = (data, {}) if isinstance(data, str) else ("", data)
        return OldRow(named["response"], named.get("slug", ""), named.get("session", ""), history, raw, fields)

    def _must_have(self, control: str) -> None:
        """For Python checks, whose needs are not visible in steps."""
        if control not in self._context.controls.available:
            raise Untested(f"no control to {control}")


def _shows(exchange: Exchange, asked: AwaitedCompression) -> bool:
    """Whether a turn shows that a compression happened: it is of the same conversation, and lacks turns that the model saw before it."""
    seen = set(exchange.seen or ())
    if exchange.label not in seen or not (asked.label in seen or same_names(exchange.step, asked.step)):
        return False
    gone = asked.seen_before - seen
    if gone:
        asked.note.proof = f"the model then no longer saw {', '.join(sorted(gone))} verbatim"
    return bool(gone)

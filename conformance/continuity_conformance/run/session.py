"""One run of the suite against one target: the event loop in its thread, and the results as they are decided.

The loop must go on while its caller is busy, so it has a thread of its own. The caller asks for results one by one and waits. A run that is given a ledger
books each result there as soon as it is decided. Nothing else books results.
"""

import asyncio
import threading
from collections.abc import Awaitable, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError, Future, as_completed
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from continuity_conformance.checks.registry import CONCLUDING, disturbs
from continuity_conformance.checks.support.openai_client import load_client, uses_client
from continuity_conformance.core.budget import Budget
from continuity_conformance.core.errors import ContinuityError, KitError, UnreachableError
from continuity_conformance.core.urls import public_url
from continuity_conformance.core.verdicts import Result, Verdict, by_review, undecided
from continuity_conformance.core.work import counted_in
from continuity_conformance.results.blocked import blocked
from continuity_conformance.results.ledger import Ledger, TargetFacts
from continuity_conformance.results.redaction import redactor_of
from continuity_conformance.run.garbage import rare_collections
from continuity_conformance.run.player import PlayLog
from continuity_conformance.run.scheduler import Scheduler
from continuity_conformance.run.signals import stoppable
from continuity_conformance.target.resolve import ResolvedTarget
from continuity_spec import Requirement

T = TypeVar("T")
_ASYNCIO: Final = Path(asyncio.__file__).parent


class Run:
    """`open()`, then `result(id)` for each requirement, then `close()`; or `with`. Results are decided in any order.

    Requirements that a person reviews need no target: without others, none is started or contacted.
    """

    def __init__(
        self,
        target: ResolvedTarget,
        requirements: Sequence[Requirement],
        budget: Budget | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self._budget = budget or Budget()
        self._target = target
        self._ledger = ledger
        self._redactor = redactor_of(target.profile, target.url)
        self._requirements = tuple(each for each in requirements if each.manual is None)
        self._manual = tuple(each for each in requirements if each.manual is not None)
        self._futures: dict[str, Future[Result]] = {requirement.id: Future() for requirement in requirements}
        self._plays: dict[str, asyncio.Task[Result]] = {}
        self._deciding: dict[str, asyncio.Task[None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._playing: Future[None] | None = None
        self._scheduler: Scheduler | None = None
        self._while_open = ExitStack()
        self._opened = False

    def open(self) -> None:
        """Start the loop thread, reach (or start) the target, calibrate, start all scenarios. Raises ContinuityError."""
        if self._requirements:
            self._start_playing()
        for requirement in self._manual:
            self._settle(by_review(requirement))
        self._opened = True

    def _start_playing(self) -> None:
        self._while_open.enter_context(stoppable())
        self._while_open.enter_context(rare_collections())
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="continuity", daemon=True)
        self._thread.start()
        try:
            self._wait(self._open())
        except ContinuityError as error:
            raise self._redactor.error(error) from None
        if self._ledger is not None:
            self._ledger.target = self.facts
        self._playing = asyncio.run_coroutine_threadsafe(self._play_all(), self._loop)

    def __enter__(self) -> Self:
        try:
            self.open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def facts(self) -> TargetFacts:
        assert self._scheduler is not None, "the run is not open"
        context = self._scheduler.context
        target = context.target
        return TargetFacts(
            self._target.profile.name,
            public_url(context.server.url),
            target.header,
            dict(target.options),
            tuple(sorted(target.offers)),
            target.observed,
        )

    @property
    def plays(self) -> PlayLog:
        """What plays, and what was played."""
        return self._scheduler.plays if self._scheduler is not None else PlayLog()

    @property
    def requests(self) -> int:
        """How many requests were sent so far."""
        assert self._scheduler is not None, "the run is not open"
        return self._scheduler.context.transport.sent

    def result(self, requirement_id: str) -> Result:
        """Wait until a requirement is decided, and return its result. Raises UnreachableError if the target died before."""
        if not self._opened:
            raise KitError("The run was not opened, so nothing is decided.", where=requirement_id)
        try:
            return self._futures[requirement_id].result()
        except CancelledError:
            raise KitError("The run ended before this requirement was decided.", where=requirement_id) from None

    def as_decided(self, seconds: float | None = None) -> Iterator[Result]:
        """Each result when it is decided. Raises TimeoutError if they are not all decided in time."""
        for future in as_completed(self._futures.values(), seconds):
            yield future.result()

    def fail(self, requirement: Requirement, reason: str) -> Result:
        """Decide a requirement as an error of the kit, because its result cannot be reported. This replaces an earlier result."""
        result = undecided(requirement, Verdict.ERROR, self._redactor.text(reason))
        if self._ledger is not None:
            self._ledger.replace(result)
        return result

    def close(self) -> None:
        """Stop what was started. Safe to call twice, and after a failed open()."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        asyncio.run_coroutine_threadsafe(self._close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        assert self._thread is not None
        self._thread.join()
        loop.close()
        for future in self._futures.values():
            future.cancel()
        self._while_open.close()

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _open(self) -> None:
        self._scheduler = Scheduler(self._target, self._redactor, self._budget)
        if any(uses_client(requirement) for requirement in self._requirements):
            asyncio.get_running_loop().run_in_executor(None, load_client)
        with counted_in(self._scheduler.plays.before):
            await self._scheduler.open()

    async def _close(self) -> None:
        """End all tasks and processes of the run."""
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task() and not _internal(task)]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if self._scheduler is not None:
            await self._scheduler.close()

    async def _play_all(self) -> None:
        """Play everything. A target that dies ends the run: what is not decided by then stays undecided."""
        try:
            await self._play_in_order()
        except UnreachableError as error:
            tasks = [*self._plays.values(), *self._deciding.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for future in self._futures.values():
                if not future.done():
                    future.set_exception(self._redactor.error(error))

    async def _play_in_order(self) -> None:
        """Play the scenarios: calm ones share servers, disturbing ones (restart, kill) are alone. Then judge `always` entries on all answers.

        The checks that use the results of other requirements come last.
        """
        scheduler = self._scheduler
        assert scheduler is not None
        calm_done = asyncio.Event()
        concluding = [requirement for requirement in self._requirements if requirement.check in CONCLUDING]
        played = [
            requirement
            for requirement in self._requirements
            if requirement.how in {"scenario", "check"} and requirement not in concluding
        ]
        disturbing = [requirement for requirement in played if disturbs(requirement)]
        disturbing.sort(key=lambda requirement: requirement.check is None)  # checks take longest, so they come first
        calm = [requirement for requirement in played if requirement not in disturbing]
        self._plays = {each.id: asyncio.create_task(self._played(each, calm_done)) for each in (*disturbing, *calm)}
        self._deciding = {each.id: asyncio.create_task(self._decide(each, self._plays[each.id])) for each in played}
        await asyncio.gather(*(self._plays[each.id] for each in calm))
        calm_done.set()
        await asyncio.gather(*self._deciding.values())
        for requirement in self._requirements:
            if requirement.how == "always":
                await self._decide(requirement, self._without_error(requirement, scheduler.judge_always(requirement)))
        for requirement in concluding:
            await self._decide(requirement, self._played(requirement, calm_done))

    def _played(self, requirement: Requirement, calm_done: asyncio.Event) -> Coroutine[Any, Any, Result]:
        assert self._scheduler is not None
        return self._without_error(requirement, self._scheduler.play(requirement, calm_done))

    async def _without_error(self, requirement: Requirement, playing: Awaitable[Result]) -> Result:
        """An exception in the kit becomes the result of one requirement; it never ends the run. Only a dead target does."""
        try:
            return await playing
        except UnreachableError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the kit's own fault becomes a verdict
            return undecided(requirement, Verdict.ERROR, f"the kit failed: {type(error).__name__}: {error}")

    async def _decide(self, requirement: Requirement, playing: Awaitable[Result]) -> None:
        """Wait for the result. A failure also waits for the requirements that this one rests on: it may be theirs."""
        assert self._scheduler is not None
        result, decided = await playing, self._scheduler.decided
        if result.verdict is Verdict.FAIL or (result.verdict is Verdict.PASS and requirement.check is not None):
            await asyncio.gather(*(self._deciding[each] for each in requirement.rests_on if each in self._deciding))
            result = blocked(requirement, result, decided)
        decided[requirement.id] = result
        if self._loop is not None:  # a scenario that close() cuts off says nothing about the target
            self._settle(self._redactor.result(result))

    def _settle(self, result: Result) -> None:
        """Book a result, then hand it to whoever waits for it."""
        if self._ledger is not None:
            self._ledger.add(result)
        self._futures[result.id].set_result(result)


def _internal(task: asyncio.Task[Any]) -> bool:
    """Whether it is asyncio's own task, which must not be cancelled.

    If a task that accepts a connection is cancelled before it starts, its socket stays open. If a task that connects the pipes of a process is
    cancelled, `process.wait()` never returns.
    """
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and Path(code.co_filename).parent == _ASYNCIO

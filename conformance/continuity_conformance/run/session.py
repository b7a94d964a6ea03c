"""One run of the suite against one target: the event loop in its thread, and the results as they are decided.

The loop must not stand still while its caller is busy, hence the thread. The caller asks for results one by one and waits.
"""

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError, Future, as_completed
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from continuity_conformance.checks.openai_client import load_client, uses_client
from continuity_conformance.checks.registry import CONCLUDING, disturbs
from continuity_conformance.core.budget import Budget
from continuity_conformance.core.errors import ContinuityError, KitError
from continuity_conformance.core.urls import public_url
from continuity_conformance.core.verdicts import Result, Verdict, by_review, undecided
from continuity_conformance.http.connect import must_answer
from continuity_conformance.results.ledger import TargetFacts
from continuity_conformance.results.redaction import redactor_of
from continuity_conformance.run.scheduler import Runner
from continuity_conformance.run.signals import stoppable
from continuity_conformance.target.resolve import ResolvedTarget
from continuity_spec import Requirement

T = TypeVar("T")
_ASYNCIO: Final = Path(asyncio.__file__).parent


class Run:
    """`open()`, then `result(id)` for each requirement, then `close()`; or `with`. Results come in any order and are waited for."""

    def __init__(
        self,
        target: ResolvedTarget,
        requirements: Sequence[Requirement],
        budget: Budget | None = None,
    ) -> None:
        self._budget = budget or Budget()
        self._target = target
        self._redactor = redactor_of(target.profile, target.url)
        self._requirements = tuple(requirements)
        self._futures: dict[str, Future[Result]] = {requirement.id: Future() for requirement in requirements}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._playing: Future[None] | None = None
        self._runner: Runner | None = None
        self._stoppable = ExitStack()

    def open(self) -> None:
        """Start the loop thread, reach (or start) the target, calibrate, start all scenarios. Raises ContinuityError."""
        self._stoppable.enter_context(stoppable())
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="continuity", daemon=True)
        self._thread.start()
        try:
            self._wait(self._open())
        except ContinuityError as trouble:
            raise self._redactor.error(trouble) from None
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
        assert self._runner is not None, "the run is not open"
        stage = self._runner.stage
        target = stage.target
        return TargetFacts(
            self._target.profile.name,
            public_url(stage.server.url),
            target.header,
            dict(target.options),
            tuple(sorted(target.offers)),
            target.observed,
        )

    @property
    def requests(self) -> int:
        """How many were sent so far."""
        assert self._runner is not None, "the run is not open"
        return self._runner.stage.transport.sent

    def result(self, requirement_id: str) -> Result:
        """Wait for a requirement and give its result."""
        try:
            return self._futures[requirement_id].result()
        except CancelledError:
            raise KitError("The run ended before this requirement was decided.", where=requirement_id) from None

    def as_decided(self, seconds: float | None = None) -> Iterator[Result]:
        """Give each result when it is decided. Raises TimeoutError where they are not all there in time."""
        for future in as_completed(self._futures.values(), seconds):
            yield future.result()

    def decided(self) -> Sequence[Result]:
        """What is decided so far, in no particular order (for a run that was stopped)."""
        done = [future for future in self._futures.values() if future.done() and not future.cancelled()]
        return [future.result() for future in done]

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
        self._stoppable.close()

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _open(self) -> None:
        self._runner = Runner(self._target, self._redactor, self._budget)
        if any(uses_client(requirement) for requirement in self._requirements):
            asyncio.get_running_loop().run_in_executor(None, load_client)
        await self._runner.open()

    async def _close(self) -> None:
        """Nothing of the run outlives it: neither a task nor a process."""
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task() and not _internal(task)]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if self._runner is not None:
            await self._runner.close()

    async def _play_all(self) -> None:
        """Calm and disturbing scenarios first; what holds always is judged on all that was said, what rests on results at last."""
        runner = self._runner
        assert runner is not None
        calm_done = asyncio.Event()
        concluding = [requirement for requirement in self._requirements if requirement.check in CONCLUDING]
        played = [
            requirement
            for requirement in self._requirements
            if requirement.how in {"scenario", "check"} and requirement not in concluding
        ]
        disturbing = [requirement for requirement in played if disturbs(requirement)]
        disturbing.sort(
            key=lambda requirement: requirement.check is None
        )  # checks take longest, and are not to be last
        calm = [requirement for requirement in played if requirement not in disturbing]
        tasks = [
            asyncio.create_task(self._decide(requirement, runner.play(requirement, calm_done)))
            for requirement in disturbing
        ]
        await asyncio.gather(*(self._decide(requirement, runner.play(requirement, calm_done)) for requirement in calm))
        calm_done.set()
        await asyncio.gather(*tasks)
        for requirement in self._requirements:
            if requirement.how == "always":
                await self._decide(requirement, runner.judge_always(requirement))
            elif requirement.how == "manual":
                self._futures[requirement.id].set_result(by_review(requirement))
        for requirement in concluding:
            await self._decide(requirement, runner.play(requirement, calm_done))

    async def _decide(self, requirement: Requirement, playing: Coroutine[Any, Any, Result]) -> None:
        """Whatever happens in the kit is the result of one requirement, never the end of the run."""
        future = self._futures[requirement.id]
        try:
            result = await playing
        except (Exception, SystemExit) as trouble:  # noqa: BLE001 - the kit's own fault becomes a verdict
            reason = f"the kit failed: {type(trouble).__name__}: {trouble}"
            result = undecided(requirement, Verdict.ERROR, reason)
        assert self._runner is not None
        self._runner.decided[requirement.id] = result
        future.set_result(self._redactor.result(result))


def _internal(task: asyncio.Task[Any]) -> bool:
    """Whether it is asyncio's own, which is not ours to cancel.

    Before its first step, one that takes in a connection would never close the socket, and one that connects the pipes of a process would let whoever waits
    for the end of that process wait for ever.
    """
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and Path(code.co_filename).parent == _ASYNCIO


def reach(target: ResolvedTarget) -> None:
    """Check quickly that the address of a running target answers at all. Raises UnreachableError."""
    if target.url:
        asyncio.run(must_answer(target.url, target.profile.ca))

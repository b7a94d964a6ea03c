"""Playing drawn sequences: each is a dialogue of its own. Those that restart the server play side by side, and share its restarts."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from continuity_conformance.core.failure import Unmet, Untested
from continuity_conformance.fuzz.sequence.counterexample import as_steps
from continuity_conformance.fuzz.sequence.machine import Drawn, Written
from continuity_conformance.scenario.context import Context
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.target.shared_restart import SharedRestarts


@dataclass(frozen=True, slots=True)
class Ending:
    """How a sequence ended: what was not met, or what could not be tested, or neither."""

    unmet: Unmet | None = None
    untested: tuple[str, ...] = ()


async def play(context: Context, steps: Sequence[Written]) -> Ending:
    """One sequence, from its first step to its last or to the first that fails."""
    dialogue = Dialogue(context, {})
    try:
        await dialogue.play(as_steps(steps))
    except Unmet as unmet:
        return Ending(unmet)
    except Untested as reason:
        return Ending(untested=(str(reason),))
    finally:
        await dialogue.leave()
    return Ending(untested=tuple(dialogue.untested))


async def play_batch(context: Context, batch: Sequence[Sequence[Written]]) -> list[Ending]:
    """One sequence, or several at once that wait for each other before the server is restarted."""
    if len(batch) == 1:
        return [await play(context, batch[0])]
    shared = SharedRestarts(context.controls.restart_now)
    together = replace(context, controls=context.controls.with_shared_restarts(shared))

    async def one(steps: Sequence[Written]) -> Ending:
        async with shared.playing():
            return await play(together, steps)

    return list(await asyncio.gather(*(one(steps) for steps in batch)))


def batches(drawn: Sequence[Drawn], cache: int) -> Iterator[list[Drawn]]:
    """One at a time; or side by side, no more than a cache of responses holds: none may lose a response that it did not evict itself."""
    batch: list[Drawn] = []
    for one in drawn:
        if batch and sum(map(_responses, [*batch, one])) > cache:
            yield batch
            batch = []
        batch.append(one)
    if batch:
        yield batch


def _responses(drawn: Drawn) -> int:
    return 1 + sum(isinstance(step, dict) and "respond" in step for step in drawn.steps)

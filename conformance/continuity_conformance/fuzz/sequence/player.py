"""Play generated sequences, each in a dialogue of its own. Sequences with restarts play in parallel and share them."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, replace

from continuity_conformance.core.failure import Inapplicable, Unmet, Untested
from continuity_conformance.core.work import current_work
from continuity_conformance.fuzz.sequence.counterexample import read_back
from continuity_conformance.fuzz.sequence.generator import GeneratedSequence, YamlStep
from continuity_conformance.scenario.context import Context
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.doubt import doubt
from continuity_conformance.target.shared_restart import SharedRestarts
from continuity_spec import Step


@dataclass(frozen=True, slots=True)
class SequenceResult:
    """How a sequence ended: the expectation that failed, or the reasons why something was not tested, or neither."""

    unmet: Unmet | None = None
    untested: tuple[str, ...] = ()
    doubtful: bool = False
    """The failure may be the kit's fault (`scenario.doubt`)."""
    inapplicable: str = ""
    """Why a step does not apply to the target; empty if all do."""


async def play(context: Context, steps: Sequence[YamlStep]) -> SequenceResult:
    """Play one sequence to its end, or to the first step that fails. A failure that may be the kit's fault is played again, once."""
    result = await _play(context, steps)
    return await _play(context, steps) if result.doubtful else result


async def _play(context: Context, steps: Sequence[YamlStep]) -> SequenceResult:
    parsed = read_back(steps)
    async with context.cache.lease(sum(map(context.target.profile.stored_responses, parsed))):
        return await _play_in_its_room(context, parsed)


async def _play_in_its_room(context: Context, steps: Sequence[Step]) -> SequenceResult:
    dialogue, turns_before = Dialogue(context, {}), context.turns_sent
    try:
        await dialogue.play(steps)
    except Unmet as unmet:
        return SequenceResult(unmet, doubtful=doubt(dialogue.record, turns_before, shared=True) is not None)
    except Untested as reason:
        return SequenceResult(untested=(str(reason),))
    except Inapplicable as reason:
        return SequenceResult(inapplicable=str(reason))
    finally:
        await dialogue.leave()
    return SequenceResult(untested=tuple(dialogue.untested))


async def play_side_by_side(
    context: Context, sequences: Sequence[GeneratedSequence]
) -> AsyncGenerator[tuple[GeneratedSequence, SequenceResult], None]:
    """Play each sequence as soon as it has a place. The results come in the order of the sequences; who wants no more of them stops the others."""

    async def play_at_a_place(sequence: GeneratedSequence) -> SequenceResult:
        async with context.places.one():
            current_work().begin_planned()
            return await play(context, sequence.steps)

    playing = [asyncio.create_task(play_at_a_place(sequence)) for sequence in sequences]
    try:
        for sequence, result in zip(sequences, playing, strict=True):
            yield sequence, await result
    finally:
        for task in playing:
            task.cancel()
        await asyncio.gather(*playing, return_exceptions=True)


async def play_in_batches(
    context: Context, sequences: Sequence[GeneratedSequence], cache_size: int
) -> AsyncGenerator[tuple[GeneratedSequence, SequenceResult], None]:
    """Play sequences with restarts on a server of their own, as many at a time as its cache holds."""
    for batch in batches(sequences, cache_size):
        for sequence, result in zip(batch, await _play_batch(context, batch), strict=True):
            yield sequence, result


async def _play_batch(context: Context, batch: Sequence[GeneratedSequence]) -> list[SequenceResult]:
    """Play one sequence, or several in parallel that wait for each other before a restart of the server."""
    if len(batch) == 1:
        return [await play(context, batch[0].steps)]
    restarts = SharedRestarts(context.controls.restart_now)
    shared_context = replace(context, controls=context.controls.with_shared_restarts(restarts))

    async def play_member(sequence: GeneratedSequence) -> SequenceResult:
        async with restarts.playing():
            return await play(shared_context, sequence.steps)

    return list(await asyncio.gather(*map(play_member, batch)))


def batches(sequences: Sequence[GeneratedSequence], cache_size: int) -> Iterator[list[GeneratedSequence]]:
    """Divide sequences into batches that play in parallel; with a `cache_size` of 0 each batch has one sequence.

    A batch has no more responses than the cache holds: a sequence must not lose a response that it did not evict.
    """
    batch: list[GeneratedSequence] = []
    for sequence in sequences:
        if batch and sum(map(_response_count, [*batch, sequence])) > cache_size:
            yield batch
            batch = []
        batch.append(sequence)
    if batch:
        yield batch


def within_cache(sequence: GeneratedSequence, cache_size: int) -> GeneratedSequence:
    """The beginning of a sequence that the target's cache holds completely; all of it with a `cache_size` of 0."""
    fits = len(sequence.steps)
    while cache_size and fits and sum(map(_responds, sequence.steps[:fits])) > cache_size:
        fits -= 1
    return GeneratedSequence(sequence.moves[:fits], sequence.steps[:fits])


def _responds(step: YamlStep) -> bool:
    return isinstance(step, dict) and "respond" in step


def _response_count(sequence: GeneratedSequence) -> int:
    return 1 + sum(map(_responds, sequence.steps))

"""Room in a bounded response cache: nothing that a running scenario needs is evicted."""

import asyncio

import pytest

from continuity_conformance.target.response_cache import ResponseCache


class Cache:
    """A cache of the target that evicts its oldest response."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.held: list[object] = []

    def store(self, response: object) -> None:
        self.held = [*self.held, response][-self.size :]


async def _scenario(room: ResponseCache, cache: Cache, responses: int, number: int) -> bool:
    """Store responses with pauses in between, and look whether all of them are there at the end."""
    async with room.lease(responses):
        for k in range(responses):
            await asyncio.sleep(0.001 * (number % 5))
            cache.store((number, k))
        await asyncio.sleep(0.001 * (number % 7))
        return all((number, k) in cache.held for k in range(responses))


@pytest.mark.parametrize("size", [5, 20, 1000])
def test_no_scenario_loses_a_response(size):
    async def play() -> list[bool]:
        room, cache = ResponseCache(size), Cache(size)
        return await asyncio.gather(*(_scenario(room, cache, number % 5, number) for number in range(200)))

    assert all(asyncio.run(play()))


def test_without_keeping_count_responses_are_lost():
    """The positive control of the test above."""

    async def play() -> list[bool]:
        room, cache = ResponseCache(0), Cache(20)
        return await asyncio.gather(*(_scenario(room, cache, number % 5, number) for number in range(200)))

    assert not all(asyncio.run(play()))


def test_what_a_scenario_that_is_over_stored_counts_as_long_as_an_older_one_runs():
    room = ResponseCache(3)
    older = room.try_lease(1)
    short = room.try_lease(2)
    assert older is not None
    assert short is not None
    room.release(short)

    assert room.try_lease(1) is None

    room.release(older)

    assert room.try_lease(3) is not None


def test_more_than_the_cache_holds_fits_where_nobody_else_needs_it():
    room = ResponseCache(3)

    assert room.try_lease(10) is not None
    assert room.try_lease(1) is None
    assert room.try_lease(0) is not None


def test_first_come_first_served():
    async def play() -> list[str]:
        room, order = ResponseCache(4), list[str]()

        async def one(name: str, responses: int) -> None:
            async with room.lease(responses):
                order.append(name)
                await asyncio.sleep(0.001)

        await asyncio.gather(one("a", 3), one("large", 4), one("small", 1))
        return order

    assert asyncio.run(play()) == ["a", "large", "small"]


def test_a_scenario_that_is_cancelled_leaves_no_lease():
    async def play() -> bool:
        room = ResponseCache(2)
        running = await room.take(2)
        waiting = asyncio.create_task(room.take(1))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        room.release(running)
        return room.try_lease(2) is not None

    assert asyncio.run(play())

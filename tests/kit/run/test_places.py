"""Places on shared servers: checks that generate their data take several of them, and go first."""

import asyncio
from types import SimpleNamespace

from continuity_conformance.run.servers import SharedServers
from continuity_conformance.scenario.context import Context
from continuity_conformance.target.response_cache import ResponseCache


def servers(parallel: int, responses: int = 0) -> SharedServers:
    unused = SimpleNamespace()
    context = Context(unused, unused, unused, unused, None, {}, {}, cache=ResponseCache(responses))
    return SharedServers(context, unused, 1, parallel)


async def play(shared: SharedServers, name: str, order: list[str]) -> None:
    async with shared.lease():
        order.append(name)
        await asyncio.sleep(0.05)


def test_a_check_with_generated_requests_sends_a_quarter_of_what_the_server_takes_at_once():
    async def at_once(parallel: int, responses: int = 0) -> int:
        async with servers(parallel, responses).lease_random(sharing=True) as context:
            return context.at_once

    assert [asyncio.run(at_once(parallel)) for parallel in (1, 4, 8, 32)] == [1, 1, 2, 8]
    assert asyncio.run(at_once(32, responses=20)) == 1, "a small cache is not crowded"


def test_a_check_that_takes_several_places_goes_before_scenarios_that_wait():
    async def played() -> list[str]:
        shared, order = servers(8), list[str]()

        async def check() -> None:
            async with shared.lease_random(sharing=False):
                order.append("check")

        scenarios = [play(shared, f"scenario {number}", order) for number in range(20)]
        waiting = asyncio.gather(*scenarios)
        await asyncio.sleep(0)
        await asyncio.gather(check(), waiting)
        return order

    order = asyncio.run(played())

    assert order[8] == "check", "the first eight were already playing"
    assert len(order) == 21


def test_every_sequence_takes_a_place_of_its_own():
    async def most_at_once() -> int:
        shared, playing, most = servers(3), 0, 0

        async def sequence(context: Context) -> None:
            nonlocal playing, most
            async with context.places.one():
                playing += 1
                most = max(most, playing)
                await asyncio.sleep(0)
                playing -= 1

        async with shared.lease_places() as context:
            await asyncio.gather(*(sequence(context) for _ in range(10)))
        return most

    assert asyncio.run(most_at_once()) == 3


def test_nothing_else_plays_beside_one_that_plays_alone():
    async def order_of_all() -> list[str]:
        shared, order = servers(8), list[str]()

        async def alone() -> None:
            async with shared.lease_alone():
                order.append("begin alone")
                await asyncio.sleep(0.01)
                order.append("end alone")

        async def check() -> None:
            async with shared.lease_random(sharing=False):
                order.append("check")

        await asyncio.gather(alone(), check(), *(play(shared, "scenario", order) for _ in range(4)))
        return order

    order = asyncio.run(order_of_all())

    assert order.index("end alone") == order.index("begin alone") + 1
    assert len(order) == 7

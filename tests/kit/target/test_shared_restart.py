"""One restart serves all scenarios that wait for one."""

import asyncio

import pytest

from continuity_conformance.core.errors import NotStartedError
from continuity_conformance.target.shared_restart import SharedRestarts, can_share


@pytest.mark.parametrize(
    ("controls", "shares"),
    [
        ({"restart"}, True),
        ({"restart", "evict", "compress"}, True),
        ({"restart", "kill"}, False),
        ({"restart", "break_store"}, False),
        ({"evict"}, False),
    ],
)
def test_only_scenarios_that_restart_and_nothing_worse_share(controls, shares):
    assert can_share(frozenset(controls)) is shares


def test_a_restart_waits_until_all_others_wait_or_are_over():
    said = []

    async def restart() -> None:
        said.append("restart")

    async def scenario(restarts: SharedRestarts, name: str, times: int) -> None:
        async with restarts.playing():
            for _ in range(times):
                await asyncio.sleep(0)
                said.append(name)
                await restarts.restart()

    async def play() -> None:
        restarts = SharedRestarts(restart)
        await asyncio.gather(scenario(restarts, "one", 1), scenario(restarts, "two", 2), scenario(restarts, "none", 0))

    asyncio.run(play())

    assert said == ["one", "two", "restart", "two", "restart"]


def test_a_restart_that_fails_fails_for_all_who_waited():
    async def restart() -> None:
        raise NotStartedError("it does not come up")

    async def scenario(restarts: SharedRestarts) -> str:
        async with restarts.playing():
            with pytest.raises(NotStartedError):
                await restarts.restart()
        return "told"

    async def play() -> list[str]:
        restarts = SharedRestarts(restart)
        return await asyncio.gather(scenario(restarts), scenario(restarts))

    assert asyncio.run(play()) == ["told", "told"]

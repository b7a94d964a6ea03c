"""Who decides which calls of a probe in another process ask for a summary: the profile, or else `continuity model --summary`."""

import asyncio

import aiohttp
import pytest
from processes import called

from continuity_conformance.core.errors import UsageError
from continuity_conformance.probe.client import RemoteProbe
from continuity_conformance.probe.server import Probe, listening
from continuity_conformance.target.profile_file import load_profile

TURNS = [{"role": "user", "content": "[u:aaaa0000] red"}, {"role": "assistant", "content": "Noted. [a:aaaa0000#1]"}]
SHRINK, SQUEEZE = ([*TURNS, {"role": "user", "content": f"{word} this."}] for word in ("Shrink", "Squeeze"))


def recognised(started_with: str, *profiles: str) -> list[bool]:
    """Whether both calls ask for a summary, after runs with these profiles."""

    async def talk() -> list[bool]:
        probe = Probe(started_with)
        async with listening(probe) as url:
            for pattern in profiles:
                async with RemoteProbe(url, pattern):
                    pass
        return [probe.record(messages).summary for messages in (SHRINK, SQUEEZE)]

    return asyncio.run(talk())


@pytest.mark.parametrize(
    ("started_with", "profiles", "expected"),
    [
        ("shrink", [], [True, False]),
        ("shrink", ["summar"], [True, False]),
        ("shrink", ["squeeze"], [False, True]),
        ("shrink", ["squeeze", "summar"], [True, False]),
        ("summar", ["squeeze"], [False, True]),
        ("summar", ["squeeze", "summar"], [False, False]),
    ],
)
def test_the_profile_decides_before_the_command(started_with, profiles, expected):
    assert recognised(started_with, *profiles) == expected


def test_an_expression_that_is_none_is_refused():
    async def talk() -> int:
        async with (
            listening(Probe()) as url,
            aiohttp.ClientSession() as client,
            client.put(f"{url}/../probe/summary", json={"pattern": "("}) as got,
        ):
            return got.status

    assert asyncio.run(talk()) == 400


def test_the_command_refuses_it_too():
    done = called("model", "--summary", "(")

    assert done.returncode == 2
    assert "--summary: '(' is no regular expression" in done.stderr


def test_a_profile_with_it_is_refused(tmp_path):
    file = tmp_path / "profile.yaml"
    file.write_text("summary: (\n", encoding="utf-8")

    with pytest.raises(UsageError, match="`summary` is no regular expression"):
        load_profile(file)

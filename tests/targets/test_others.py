"""nanobot, OGX and OpenClaw as they are: what the suite finds, where their data are, whom they talk to, and that nothing of them is left."""

import asyncio
from pathlib import Path

import aiohttp
import pytest
from targets.playing import peers, play
from targets.test_hermes import NOBODY_AND_LOOPBACK

from continuity_conformance.probe import Probe, listening
from continuity_conformance.profile import Profile
from continuity_conformance.servers import Server, start_server
from continuity_conformance.targets import resolve
from continuity_conformance.verdicts import Verdict

PASS, FAIL, NOT_APPLICABLE = Verdict.PASS, Verdict.FAIL, Verdict.NOT_APPLICABLE
FOUND = {
    "nanobot": {
        "ECHO-01": (FAIL, "absent"),
        "HISTORY-02": (PASS, ""),
        "HISTORY-08": (FAIL, "red, blue (no answer), green"),
        "DERIVE-15": (FAIL, "expected red, actual"),
        "ISOLATE-01": (PASS, ""),
        "ISOLATE-04": (FAIL, "expected 400, actual 500"),
        "SLUG-02": (NOT_APPLICABLE, "does not offer responses"),
    },
    "ogx": {
        "SLUG-02": (PASS, ""),
        "HISTORY-02": (FAIL, "expected red, blue, actual blue"),
        "STREAM-02": (FAIL, "[DONE]"),
        "CONCUR-01": (FAIL, "serial: expected an order"),
    },
    "openclaw": {
        "ECHO-01": (FAIL, "absent"),
        "HISTORY-02": (PASS, ""),
        "HISTORY-01": (FAIL, "forged"),
        "SLUG-07": (FAIL, "actual status 200"),
        "SLUG-02": (NOT_APPLICABLE, "takes no slugs"),
        "ISOLATE-09": (FAIL, "expected blue, actual red, blue"),
        "DERIVE-15": (PASS, ""),
    },
}
"""What was measured by hand, and the requirement that says so."""


@pytest.mark.parametrize("target", FOUND)
def test_the_suite_finds_what_was_measured_by_hand(target: str):
    results = play(target, list(FOUND[target]))

    assert {name: result.verdict for name, result in results.items()} == {
        name: verdict for name, (verdict, _) in FOUND[target].items()
    }
    assert [name for name, (_, words) in FOUND[target].items() if words not in results[name].reason] == []


@pytest.mark.parametrize("target", FOUND)
def test_it_keeps_its_data_in_its_folder_and_talks_to_loopback_alone(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    profile, _ = resolve(target, None)
    monkeypatch.setenv("HOME", str(tmp_path))

    pid, folder, seen = asyncio.run(talk(profile))

    assert not folder.exists()
    assert not Path(f"/proc/{pid}").exists()
    assert list(tmp_path.iterdir()) == []
    assert seen
    assert seen <= NOBODY_AND_LOOPBACK


async def talk(profile: Profile) -> tuple[int, Path, set[str]]:
    async with listening(Probe(profile.summary)) as url:
        server = await start_server(profile, url)
        assert server.started is not None
        try:
            seen = await two_turns(profile, server)
            folder = server.started.file("{folder}")
            assert any(path.is_file() for path in folder.rglob("*"))
        finally:
            await server.stop()
    return server.started.pid, folder, seen


async def two_turns(profile: Profile, server: Server) -> set[str]:
    assert server.started is not None
    seen: set[str] = set()
    headers = {"Authorization": f"Bearer {profile.principals['alice']}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        for say in ("red", "blue"):
            body = {"model": profile.model, "messages": [{"role": "user", "content": say}]}
            async with session.post(f"{server.url}/v1/chat/completions", json=body) as answer:
                assert answer.status == 200
            seen |= peers(server.started.pid)
    return seen


def test_every_version_can_be_asked_for():
    assert {name: resolve(f"{name}=={version}", None)[0].name for name, version in VERSIONS.items()} == {
        name: f"{name} {version}" for name, version in VERSIONS.items()
    }


VERSIONS = {"nanobot": "0.3.5", "ogx": "1.5.0", "openclaw": "2026.9.6"}

"""The real servers: where their data are, whom they talk to, and that nothing of them is left, also when a run is interrupted."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
import pytest
from processes import processes_with, started
from target_runs import TARGETS, peers

from continuity_conformance.core.cache import user_cache
from continuity_conformance.probe.server import Probe, listening
from continuity_conformance.target.profile import Profile
from continuity_conformance.target.resolve import resolve
from continuity_conformance.target.server import Server, start_server

NOBODY_AND_LOOPBACK = {"00000000", "0100007F", "0" * 32, "0000000000000000FFFF00000100007F", "0" * 24 + "01000000"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the user that nobody may touch; what is installed stays where it is."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(user_cache().parent))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("target", TARGETS)
def test_it_keeps_its_data_in_its_folder_and_talks_to_loopback_alone(
    target: str, home: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
):
    scratch = tmp_path_factory.mktemp("scratch")
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    profile = resolve(target).profile
    installed = environment_of(profile)
    before = set(installed.rglob("*"))

    with peers(str(scratch)) as seen:
        folder = asyncio.run(talk(profile))

    assert folder.parent == scratch
    assert list(scratch.iterdir()) == []
    assert processes_with(str(scratch)) == []
    assert list(home.iterdir()) == []
    assert set(installed.rglob("*")) == before
    assert seen
    assert seen <= NOBODY_AND_LOOPBACK


TALKS = """
import socket, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
    other.connect(("192.0.2.1", 53))
    time.sleep(0.3)
"""


def test_whoever_talks_to_others_is_seen():
    """A child of the process that was started, by UDP, after its parent is gone. The address is nobody's, and nothing is sent."""
    starts = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {TALKS!r}])"
    with peers("OWN_WORDS=continuity") as seen:
        subprocess.run([sys.executable, "-c", starts], env={**os.environ, "OWN_WORDS": "continuity"}, check=True)
        time.sleep(1.0)

    assert seen == {"010200C0"}


def environment_of(profile: Profile) -> Path:
    """Where it is installed: the folder of the cache that its program is in."""
    assert profile.process is not None
    places = user_cache() / "targets"
    return next(
        path for word in reversed(profile.process.start) for path in Path(word).parents if path.parent == places
    )


async def talk(profile: Profile) -> Path:
    async with listening(Probe(profile.summary)) as url:
        server = await start_server(profile, url)
        assert server.started is not None
        try:
            await two_turns(profile, server)
            folder = server.started.file("{folder}")
            assert any(path.is_file() for path in folder.rglob("*"))
        finally:
            await server.stop()
    return folder


async def two_turns(profile: Profile, server: Server) -> None:
    async with aiohttp.ClientSession(headers=profile.headers_of("alice")) as session:
        for say in ("red", "blue"):
            path, body = profile.first_turn(say)
            async with session.post(f"{server.url}{path}", json=body) as answer:
                assert answer.status == 200


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("target", TARGETS)
def test_an_interrupted_run_leaves_nothing(target: str, number: signal.Signals, tmp_path: Path):
    """Its scratch folders are under TMPDIR, and each of them is the home of a server."""
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [str(Path(sys.executable).with_name("continuity")), "check", target]
    with started(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as kit:
        deadline = time.monotonic() + 300
        while not (began := processes_with(f"HOME={tmp_path}")) and time.monotonic() < deadline:
            time.sleep(0.5)
        time.sleep(3.0)  # wherever it is by then: starting more of them, or in the middle of turns
        kit.send_signal(number)
        kit.wait(90)

    assert began
    assert processes_with(str(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []

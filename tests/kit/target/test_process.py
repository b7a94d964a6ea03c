"""A target that the kit starts: its files, its environment, its first turn, its end."""

import asyncio
import json
import os
import sys
import time
import urllib.request
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from processes import processes_with

from continuity_conformance.core.errors import NotStartedError
from continuity_conformance.http.messages import KeyField
from continuity_conformance.run.session import Run
from continuity_conformance.target.profile import Process, Profile
from continuity_conformance.target.resolve import resolve
from continuity_conformance.target.server import start_server

SERVER = (sys.executable, str(Path(__file__).parents[2] / "servers" / "process_server.py"), "{port}")


@asynccontextmanager
async def started(*arguments: str, **process: object):
    profile = Profile("small", principals={"alice": "key-of-alice"}, process=Process((*SERVER, *arguments), **process))
    server = await start_server(profile, "http://127.0.0.1:1/v1")
    try:
        yield server
    finally:
        await server.stop()


def told(server) -> dict:
    with urllib.request.urlopen(f"{server.url}/health") as answer:
        return json.load(answer)


WRITER = """
import os, pathlib, sys, time
os.setsid()
until = time.monotonic() + 2
for number in range(100_000):
    folder = pathlib.Path(sys.argv[1], f"cache-{number % 7}")
    try:
        folder.mkdir(exist_ok=True)
        (folder / str(number)).write_text("more")
    except FileNotFoundError:
        time.sleep(0)
    if time.monotonic() > until:
        break
"""


def test_a_child_that_outlives_the_target_and_writes_does_not_spoil_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    start = f"{sys.executable} -c '{WRITER}' {{folder}} & exec {sys.executable} {SERVER[1]} {{port}}"
    profile = Profile("small", principals={"alice": "key-of-alice"}, process=Process(("sh", "-c", start)))

    async def play() -> bool:
        server = await start_server(profile, "http://127.0.0.1:1/v1")
        await server.stop()
        assert server.started is not None
        return server.started.runs

    assert asyncio.run(play()) is False


LATE = """
import pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[1])
def stop(*_):
    time.sleep(0.4)
    (folder / "late").write_text("the child has ended")
    sys.exit()
signal.signal(signal.SIGTERM, stop)
(folder / "ready").touch()
time.sleep(60)
"""


def test_a_child_that_ends_later_than_the_target_is_waited_for():
    start = (
        f"{sys.executable} -c '{LATE}' {{folder}} & while [ ! -e {{folder}}/ready ]; do sleep 0.02; done; "
        f"exec {sys.executable} {SERVER[1]} {{port}}"
    )
    profile = Profile("small", principals={"alice": "key-of-alice"}, process=Process(("sh", "-c", start)))

    async def play() -> bool:
        server = await start_server(profile, "http://127.0.0.1:1/v1")
        assert server.started is not None
        await server.started.end()
        ended = server.started.file("{folder}/late").exists()
        await server.stop()
        return ended

    assert asyncio.run(play())


async def what_it_tells(*arguments: str, **process: object) -> dict:
    async with started(*arguments, **process) as server:
        return await asyncio.to_thread(told, server)


def test_files_are_there_before_the_first_start_with_everything_filled_in():
    async def play() -> tuple[str, list[str], str]:
        files = {"a.txt": "{port} {probe}", "inner/b.txt": "{folder}"}
        async with started(files=files) as server:
            assert server.started is not None
            text = server.started.file("{folder}/a.txt").read_text()
            server.started.file("{folder}/a.txt").write_text("its own")
            await server.started.restart()
            there = (await asyncio.to_thread(told, server))["here"]
            return text, there, server.started.file("{folder}/a.txt").read_text()

    text, there, later = asyncio.run(play())

    assert text.endswith(" http://127.0.0.1:1/v1")
    assert there == ["a.txt", "inner/b.txt"]
    assert later == "its own"


def test_an_isolated_target_gets_nothing_of_the_user(monkeypatch: pytest.MonkeyPatch):
    for name in ("HTTPS_PROXY", "OPENAI_API_KEY", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, "the-users")

    env = asyncio.run(what_it_tells(isolated=True, env={"OWN": "{folder}/x"}))["env"]

    assert "the-users" not in env.values()
    assert env["PATH"] == os.environ["PATH"]
    assert env["OWN"] == f"{env['HOME']}/x"
    assert env["TMPDIR"].startswith(env["HOME"])
    assert env["HTTPS_PROXY"] == env["http_proxy"] == "http://127.0.0.1:9"
    assert env["NODE_USE_ENV_PROXY"] == "1"


def test_any_other_target_gets_the_users_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MINE", "the-users")

    assert asyncio.run(what_it_tells())["env"]["MINE"] == "the-users"


def test_a_target_is_ready_after_its_first_turn():
    began = time.monotonic()

    turns = asyncio.run(what_it_tells("--first-turn=1", warm_up=10.0))["turns"]

    assert len(turns) == 1
    assert turns[0]["Authorization"] == "Bearer key-of-alice"
    assert time.monotonic() - began > 1


def test_the_first_requests_are_those_of_the_profile():
    """The key in its field and the headers of every request; whether it is ready is asked without a key."""

    async def play() -> dict:
        process = Process(SERVER, warm_up=10.0)
        own = {"headers": {"X-Tenant": "north"}, "key_field": KeyField.read("X-Api-Key: {key}")}
        server = await start_server(Profile("small", principals={"alice": "key-of-alice"}, process=process, **own), "")
        try:
            return await asyncio.to_thread(told, server)
        finally:
            await server.stop()

    said = asyncio.run(play())

    for request in (said["asked"][0], said["turns"][0]):
        assert request["X-Tenant"] == "north"
        assert request["User-Agent"].startswith("session-continuity")
        assert "Authorization" not in request
    assert "X-Api-Key" not in said["asked"][0]
    assert said["turns"][0]["X-Api-Key"] == "key-of-alice"


@pytest.mark.parametrize(
    ("arguments", "reason"), [(("--first-turn=5",), "no answer in 0.5 s"), (("--refuses",), "503")]
)
def test_a_first_turn_that_does_not_come_back_is_told(arguments: tuple[str, ...], reason: str):
    with pytest.raises(NotStartedError, match=f"first turn did not succeed: {reason}"):
        asyncio.run(what_it_tells(*arguments, warm_up=0.5))


def test_a_target_that_does_not_end_in_its_time_is_killed():
    async def play() -> float:
        async with started("--deaf", stop_seconds=0.5):
            began = time.monotonic()
        return time.monotonic() - began

    assert 0.4 < asyncio.run(play()) < 5


TALKATIVE = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.stdout.write("x" * 1_000_000))
while True: time.sleep(0.05)
"""


def test_one_that_says_much_and_does_not_end_is_ended_all_the_same():
    """Stopped in the middle of its start, when everything else of the run is cancelled too."""

    async def play() -> None:
        process = Process((sys.executable, "-c", TALKATIVE), stop_seconds=1.0)
        starting = asyncio.create_task(start_server(Profile("talkative", process=process), ""))
        await asyncio.sleep(0.5)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        async with asyncio.timeout(20):
            await asyncio.gather(*others, return_exceptions=True)
        assert starting.cancelled()

    asyncio.run(play())


def test_a_run_that_is_closed_while_a_process_starts_leaves_nothing(tmp_path):
    words = f"{tmp_path}"
    profile = Profile("small", process=Process((*SERVER, words)))

    async def play() -> bool:
        starting = asyncio.create_task(start_server(profile, ""))
        while not processes_with(words):  # noqa: ASYNC110 - nobody tells when it is forked
            await asyncio.sleep(0)  # forked, and its pipes are not connected yet
        await Run(resolve(None), [])._close()
        return starting.cancelled()

    assert asyncio.run(asyncio.wait_for(play(), 20))
    assert processes_with(words) == []

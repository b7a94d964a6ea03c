"""A target that is forked from a Python process with its modules imported is a process like any other."""

import asyncio
import json
import os
import signal
import sys
import urllib.request
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from processes import processes_with

from continuity_conformance.core.errors import NotStartedError
from continuity_conformance.target import warm_python
from continuity_conformance.target.profile import Process, Profile
from continuity_conformance.target.server import start_server

SERVERS = str(Path(__file__).parents[2] / "servers")
COMMAND = (sys.executable, "-m", "process_server", "{port}")
SECRET = "--redirects=http://127.0.0.1:1/key-in-an-argument"

pytestmark = pytest.mark.skipif(not warm_python.CAN_FORK, reason="only Linux can wait for a process that is no child")


@asynccontextmanager
async def forked(*arguments: str, **process: object):
    own = {"env": {"PYTHONPATH": SERVERS, "OWN": "{folder}"}, "preload": ("http.server", "argparse"), **process}
    server = await start_server(Profile("small", process=Process((*COMMAND, *arguments), **own)), "")
    try:
        yield server.started
    finally:
        await server.stop()


def told(process) -> dict:
    with urllib.request.urlopen(f"{process.url}/health") as answer:
        return json.load(answer)


def open_files(pid: int) -> list[str]:
    """What a process has open. A file that it closes meanwhile is left out."""
    files = []
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            files.append(str(each.readlink()))
    return files


def test_it_has_a_group_a_folder_and_an_environment_of_its_own():
    async def play() -> tuple[int, int, str, dict]:
        async with forked(files={"a.txt": ""}) as process:
            answer = await asyncio.to_thread(told, process)
            return process.pid, os.getpgid(process.pid), str(process.file("{folder}")), answer

    pid, group, folder, answer = asyncio.run(play())

    assert group == pid != os.getpgid(0)
    assert answer["env"]["OWN"] == folder
    assert answer["here"] == ["a.txt"]


def test_it_has_no_open_files_of_the_process_it_comes_from():
    async def play() -> list[str]:
        async with forked() as process:
            return await asyncio.to_thread(open_files, process.pid)

    files = asyncio.run(play())

    assert [file for file in files if file.startswith("pipe:")] == []
    assert "/dev/null" in files


def test_its_command_line_has_none_of_its_arguments():
    async def play() -> list[int]:
        async with forked(SECRET):
            return processes_with("key-in-an-argument")

    assert asyncio.run(play()) == []


@pytest.mark.parametrize(("how", "code"), [(signal.SIGKILL, -9), (signal.SIGUSR1, -10)])
def test_its_end_and_its_exit_code_are_seen(how: signal.Signals, code: int):
    async def play() -> tuple[bool, int | None]:
        async with forked() as process:
            await process.end(how)
            return process.runs, process._running.returncode

    assert asyncio.run(play()) == (False, code)


def test_the_output_of_one_that_does_not_start_is_shown():
    async def play() -> None:
        async with forked("--unknown-option"):
            raise AssertionError

    with pytest.raises(NotStartedError, match=r"exit code 2(?s:.*)unrecognized arguments: --unknown-option"):
        asyncio.run(play())


def test_modules_that_cannot_be_imported_are_named():
    async def play() -> None:
        async with forked(preload=("no_such_module",)):
            raise AssertionError

    with pytest.raises(NotStartedError, match="no_such_module"):
        asyncio.run(play())


def test_any_other_command_is_started_as_usual():
    assert not warm_python.can_fork(("node", "server.mjs"))
    assert not warm_python.can_fork((sys.executable, "server.py"))


async def ended(warm: warm_python.WarmPython, order: tuple[list[str], dict[str, str], str, str]) -> int:
    return await (await warm.fork(*order)).wait()


def test_one_whose_folder_is_gone_before_it_starts_ends_without_a_word(tmp_path, capfd):
    """A run may end, and remove its folder, while its server starts."""
    warm = warm_python.WarmPython((), dict(os.environ))
    try:
        order = ([sys.executable, "-m", "http.server"], {}, str(tmp_path), str(tmp_path / "gone" / "output"))
        code = asyncio.run(ended(warm, order))
    finally:
        warm._close()  # usually at the end of the kit

    assert code == 1
    assert capfd.readouterr().err == ""


LAST_WORDS = """
import atexit, sys, threading, time
atexit.register(print, "last")
threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
print("first")
{end}
"""


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        ("", 0, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit('a reason')", 1, "a reason\n"),
        ("raise OSError('a fault')", 1, "OSError: a fault\n"),
    ],
)
def test_at_its_end_it_does_what_a_program_wants_done(end: str, code: int, said: str, tmp_path: Path):
    """Its interpreter is not taken apart, but threads are waited for, functions of atexit are called, and files are written."""
    (tmp_path / "last_words.py").write_text(LAST_WORDS.format(end=end))
    warm = warm_python.WarmPython((), dict(os.environ))
    try:
        order = (
            [sys.executable, "-m", "last_words"],
            {"PYTHONPATH": str(tmp_path)},
            str(tmp_path),
            str(tmp_path / "output"),
        )
        found = asyncio.run(ended(warm, order))
    finally:
        warm._close()
    output = (tmp_path / "output").read_text()

    assert found == code
    assert output.endswith("thread\nlast\n")
    assert "first\n" in output
    assert said in output

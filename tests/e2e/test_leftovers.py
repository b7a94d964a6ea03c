"""Whatever ends a run, results.json is readable, has what was decided, and says that the run did not go to its end."""

import itertools
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from processes import CONTINUITY, processes_in, processes_with, started

from continuity_conformance.suite.release import newest
from continuity_spec.load.schema import schema

Results = Callable[[], dict[str, Any]]
RELEASE = len(newest().requirements)
LARGE = ("--area", "DERIVE,HISTORY,SLUG")
"""What makes results.json grow from about 600 to 700 KB and more during the run."""


@contextmanager
def stalling(url: str) -> Iterator[str]:
    """A server that passes everything on, except that turns by slug are never answered: a run there has always something open."""
    command = [sys.executable, str(Path(__file__).parents[1] / "servers" / "stalling.py"), url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


@pytest.fixture(scope="module")
def stalled(url: str) -> Iterator[str]:
    with stalling(url) as address:
        yield address


@contextmanager
def checking(
    target: str, folder: Path, environ: dict[str, str], *more: str, part: str = "ECHO-02 or SLUG-02"
) -> Iterator[subprocess.Popen[str]]:
    command = [CONTINUITY, "check", target, "-k", part, "--report", "report", *more]
    with started(
        command, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def decided(written: dict[str, Any]) -> list[str]:
    return [each["id"] for each in written["requirements"] if each["verdict"] == "pass"]


def wait_for_a_pass(results: Results, running: subprocess.Popen[str]) -> None:
    """The file itself is what is waited for: a reader must never find half of it."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert running.poll() is None, running.communicate()
        try:
            if decided(results()):
                return
        except FileNotFoundError:
            pass
        time.sleep(0.05)
    raise AssertionError("nothing was decided in a minute")


def assert_incomplete(written: dict[str, Any]) -> None:
    jsonschema.validate(written, schema("results"))
    assert len(written["requirements"]) == RELEASE
    assert written["verdict"] != "conformant"
    assert written["complete"] is False
    assert written["finished"] is False
    assert written["gate"]["passed"] is False
    assert decided(written)


def test_killed_in_the_middle_it_leaves_what_was_decided(stalled, tmp_path, surroundings, results: Results):
    with checking(stalled, tmp_path, surroundings) as running:
        wait_for_a_pass(results, running)
        running.kill()
        running.wait()

    assert_incomplete(results())
    assert "the run was going on" in {each["id"]: each for each in results()["requirements"]}["SLUG-02"]["reason"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_in_good_order(stalled, tmp_path, surroundings, results: Results, number: signal.Signals):
    with checking(stalled, tmp_path, surroundings, "--accept-untested") as running:
        wait_for_a_pass(results, running)
        running.send_signal(number)
        said, complaints = running.communicate(timeout=30)

    assert running.returncode == 128 + number
    assert "stopped: not everything that was selected was decided" in said
    assert "Traceback" not in said + complaints
    assert_incomplete(results())
    assert "the run was stopped" in {each["id"]: each for each in results()["requirements"]}["SLUG-02"]["reason"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_more_signals_do_not_disturb_the_end(stalled, tmp_path, surroundings, results: Results, number: signal.Signals):
    """People press Ctrl-C again and again, and service managers are no better."""
    with checking(stalled, tmp_path, surroundings) as running:
        wait_for_a_pass(results, running)
        while running.poll() is None:
            running.send_signal(number)
            time.sleep(0.02)
        said, complaints = running.communicate(timeout=30)

    assert running.returncode == 128 + number
    assert "stopped: not everything that was selected was decided" in said
    assert "Traceback" not in said + complaints
    assert_incomplete(results())


@pytest.mark.parametrize("command", ["check", "run"])
@pytest.mark.parametrize("numbers", [(signal.SIGINT, signal.SIGTERM), (signal.SIGHUP, signal.SIGINT)])
def test_nothing_that_was_started_outlives_signals(
    tmp_path, surroundings, command: str, numbers: tuple[signal.Signals]
):
    asked = ["check", "-k", "DURABLE"] if command == "check" else ["run", "DURABLE-03"]
    environ = surroundings | {"TMPDIR": str(tmp_path)}
    with started([CONTINUITY, *asked], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        while not processes_in(tmp_path):
            assert running.poll() is None, running.communicate()
            time.sleep(0.02)
        for number in itertools.cycle(numbers):
            if running.poll() is not None:
                break
            running.send_signal(number)
            time.sleep(0.05)

    assert running.returncode in {128 + number for number in numbers}
    assert processes_with(str(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


def test_terminated_under_pytest_it_leaves_what_was_decided(stalled, tmp_path, surroundings, results: Results):
    command = [sys.executable, "-m", "pytest", "--target", stalled, "--continuity-report", "report"]
    command += ["ECHO-02", "SLUG-02"]
    with started(command, cwd=tmp_path, env=surroundings, stdout=subprocess.PIPE, text=True) as running:
        wait_for_a_pass(results, running)
        running.terminate()
        said, _ = running.communicate(timeout=30)

    assert running.returncode == 143
    assert "stopped: not everything that was selected was decided" in said
    assert_incomplete(results())


def test_before_anything_is_decided_the_file_says_so(tmp_path, surroundings, results: Results):
    """The target accepts connections and says nothing, so that the run hangs in its first question."""
    with silent() as address, checking(address, tmp_path, surroundings) as running:
        deadline = time.monotonic() + 30
        while not (tmp_path / "report" / "results.json").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        running.kill()
        running.wait()

    jsonschema.validate(results(), schema("results"))
    assert results()["finished"] is False
    assert results()["counts"]["not_tested"] == RELEASE


@contextmanager
def silent() -> Iterator[str]:

    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def crashing(hook: str, url: str, folder: Path, environ: dict[str, str]) -> int:
    """Run the suite in a pytest with a plugin that does not survive; give its exit code."""
    (folder / "crash.py").write_text(hook)
    command = [sys.executable, "-m", "pytest", "-p", "crash", "--target", url, "--continuity-report", "report"]
    command += ["ECHO-02", "ECHO-03"]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, timeout=400, check=False).returncode


def test_an_exception_leaves_a_readable_file(url, tmp_path, surroundings, results: Results):
    hook = "def pytest_runtest_logreport(report):\n    if report.nodeid.endswith('ECHO-03'): raise RuntimeError('bug')"
    code = crashing(hook, url, tmp_path, surroundings)

    assert code == 4
    assert_incomplete(results())
    assert results()["verdict"] == "error"


def test_an_item_that_fails_in_its_set_up_is_an_error_in_the_results(url, tmp_path, surroundings, results: Results):
    """Also if the run has decided it meanwhile: what the terminal shows is what is written."""
    hook = (
        "import time\n"
        "def pytest_runtest_setup(item):\n"
        "    if item.name == 'ECHO-03': time.sleep(3); raise RuntimeError('bug')"
    )
    code = crashing(hook, url, tmp_path, surroundings)
    rows = {each["id"]: each for each in results()["requirements"]}

    assert code == 4
    assert rows["ECHO-02"]["verdict"] == "pass"
    assert rows["ECHO-03"]["verdict"] == "error"
    assert rows["ECHO-03"]["reason"] == "the kit failed: RuntimeError: bug"
    assert results()["finished"] is True


def test_an_abort_leaves_a_readable_file(url, tmp_path, surroundings, results: Results):
    hook = "import os\nimport pytest\n@pytest.hookimpl(tryfirst=True)\ndef pytest_sessionfinish():\n    os.abort()"
    code = crashing(hook, url, tmp_path, surroundings)

    assert code == -signal.SIGABRT
    jsonschema.validate(results(), schema("results"))
    assert results()["finished"] is False


def full_disk() -> None:
    """No file may grow over 680 kB in this process: more than the first results.json has, less than the last."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (680_000, 680_000))


def test_a_full_disk_leaves_the_last_file_that_could_be_written(url, tmp_path, surroundings, results: Results):
    command = [CONTINUITY, "check", url, *LARGE, "--report", "report"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=surroundings | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        preexec_fn=full_disk,
    )
    written = results()

    assert done.returncode == 4
    assert "the report cannot be written" in done.stderr
    assert "verdict: " in done.stdout
    jsonschema.validate(written, schema("results"))
    assert written["finished"] is False
    assert sorted(each.name for each in (tmp_path / "report").iterdir()) == ["results.json"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_disk_that_is_really_full_does_so_too(url, tmp_path, surroundings, results: Results):
    (tmp_path / "report").mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(tmp_path / "report")], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"mount is not allowed here: {mounted.stderr.decode().strip()}")
    try:
        done = subprocess.run(
            [CONTINUITY, "check", url, *LARGE, "--report", "report"],
            cwd=tmp_path,
            env=surroundings,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        written = results()
    finally:
        subprocess.run(["umount", str(tmp_path / "report")], check=True)

    assert done.returncode == 4
    assert "No space left" in done.stderr
    jsonschema.validate(written, schema("results"))
    assert written["finished"] is False


def test_a_reader_never_finds_half_a_file(url, tmp_path, surroundings, results: Results):
    """Read it as often as possible while it is written again and again."""
    read = 0
    with checking(url, tmp_path, surroundings, part="ECHO or SLUG") as running:
        while running.poll() is None:
            if (tmp_path / "report" / "results.json").exists():
                json.loads((tmp_path / "report" / "results.json").read_text(encoding="utf-8"))
                read += 1
        running.communicate()

    assert read > 10
    assert results()["finished"] is True

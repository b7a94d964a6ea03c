"""Under nohup, or in the background of a script, some signals are ignored. A run keeps ignoring them; what it starts does not."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import CONTINUITY, STOPPING, processes_in, processes_with

from continuity_conformance.run.signals import stoppable

IGNORED = "import signal; print([n.name for n in signal.Signals if signal.getsignal(n) is signal.SIG_IGN])"
IGNORING = ("/bin/sh", "-c", "trap '' HUP INT TERM; exec \"$@\"", "sh")
"""What starts a command that ignores these signals."""


@pytest.fixture(params=STOPPING)
def ignored(request: pytest.FixtureRequest):
    before = signal.signal(request.param, signal.SIG_IGN)
    yield request.param
    signal.signal(request.param, before)


def test_an_ignored_signal_stays_ignored(ignored: signal.Signals):
    with stoppable():
        os.kill(os.getpid(), ignored)

    assert signal.getsignal(ignored) is signal.SIG_IGN


def test_a_process_that_a_run_starts_ignores_nothing(ignored: signal.Signals):
    with stoppable():
        done = subprocess.run([sys.executable, "-c", IGNORED], capture_output=True, text=True, check=True)

    assert ignored.name not in done.stdout


def test_another_run_inside_changes_nothing(ignored: signal.Signals):
    with stoppable():
        with stoppable():
            pass
        os.kill(os.getpid(), ignored)

    assert signal.getsignal(ignored) is signal.SIG_IGN


def is_ignored(pid: int, number: signal.Signals) -> bool:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return bool(int(status["SigIgn"], 16) >> (number - 1) & 1)


def test_a_run_under_nohup_goes_to_its_end_and_its_target_ends_by_a_signal(tmp_path, surroundings):
    with subprocess.Popen(
        [*IGNORING, CONTINUITY, "run", "DURABLE-03"],
        env=surroundings | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as running:
        while not (targets := processes_in(tmp_path)):
            assert running.poll() is None, running.communicate()
            time.sleep(0.02)
        inherited = [number for number in STOPPING if is_ignored(targets[0], number)]
        for number in STOPPING:
            running.send_signal(number)
        said, _ = running.communicate(timeout=120)

    assert running.returncode == 0, said.decode()
    assert inherited == []
    assert processes_with(str(tmp_path)) == []

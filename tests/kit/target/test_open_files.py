"""The open files of a process, as HISTORY-12 counts them."""

import subprocess
import sys

import pytest

from continuity_conformance.core.failure import Untested
from continuity_conformance.target.open_files import open_files

OPENS = "import sys; files = [open('/dev/null') for _ in range(int(sys.argv[1]))]; print('ready', flush=True); sys.stdin.read()"
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {OPENS!r}, '7'])"


def counted(*command: str) -> int:
    process = subprocess.Popen(
        [sys.executable, "-c", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        return open_files(process.pid)


def test_every_open_file_counts():
    assert counted(OPENS, "20") - counted(OPENS, "5") == 15


def test_child_processes_count_too():
    assert counted(CHILD) > counted(OPENS, "7")


def test_a_process_that_is_not_there_is_not_tested():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()

    with pytest.raises(Untested, match="/proc"):
        open_files(gone.pid)

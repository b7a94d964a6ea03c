"""Servers that name their sessions in other ways, have no chat, ignore `conversation`, or refuse a wrong key with 400."""

import asyncio
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from processes import CONTINUITY, started
from thread_servers import KEYS, InTheBody, Page, UnusualRefusal, Welcoming, http_server

from continuity_conformance.doctor import profile_writer
from continuity_conformance.doctor.dry_run import plan
from continuity_conformance.doctor.findings import Findings, Topic
from continuity_conformance.doctor.session_names import SessionName
from continuity_conformance.doctor.state import SurveyState
from continuity_conformance.doctor.survey import dry_run, survey
from continuity_conformance.run.session import Run
from continuity_conformance.suite.release import newest
from continuity_conformance.target.port import Port
from continuity_conformance.target.profile import Limits, Profile
from continuity_conformance.target.profile_file import load_profile
from continuity_conformance.target.resolve import ResolvedTarget

SERVERS = Path(__file__).parents[2] / "servers"
RELEASE = newest().requirements


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    with started([CONTINUITY, "model"], stdout=subprocess.PIPE, text=True) as process:
        yield re.search(r"http://[0-9.:]+/v1", process.stdout.readline())[0]
        process.terminate()


@contextmanager
def running(script: str, model: str, *demands: str) -> Iterator[str]:
    port = Port()
    with started([sys.executable, str(SERVERS / script), str(port.number), model, *demands]) as process:
        url = f"http://127.0.0.1:{port.number}"
        try:
            asyncio.run(_listening(port.number))
            yield url
        finally:
            process.terminate()
            port.release()


async def _listening(port: int) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                return writer.close()


def looked_at(url: str, **more: object) -> SurveyState:
    return asyncio.run(survey(url, Profile("it", limits=Limits(turn_seconds=5), **more), RELEASE))  # type: ignore[arg-type]


def said(findings: Findings, topic: Topic) -> str:
    return " | ".join(text for about, text in findings.sentences if about is topic)


def written(state: SurveyState, path: Path) -> Profile:
    profile_writer.write(path, profile_writer.text(state.findings, state.profile, profile_writer.AccessOptions(), path))
    return load_profile(path)


def test_a_server_without_chat_is_examined_from_the_doctor_to_a_run(model, tmp_path):
    with running("responses_only.py", model) as url:
        state = looked_at(url, probe=model)
        profile = written(state, tmp_path / "my.yaml")
        played = [each for each in RELEASE if each.id in {"HISTORY-02", "ISOLATE-02", "ECHO-11"}]
        with Run(ResolvedTarget(profile, url, url), played) as run:
            found = {each.id: run.result(each.id).verdict.value for each in played}

    assert state.findings.error is None
    assert "it has no /v1/chat/completions" in said(state.findings, Topic.API)
    assert "in the second turn it saw the first" in said(state.findings, Topic.MODEL)
    assert (profile.chat, profile.slugs) == ("none", "named")
    assert found == {"HISTORY-02": "pass", "ISOLATE-02": "fail", "ECHO-11": "not_applicable"}


def test_a_header_and_the_form_of_its_ids_are_found_by_behaviour(model, tmp_path):
    with running("demanding.py", model, "uuid") as url:
        state = looked_at(url, probe=model)
    profile = written(state, tmp_path / "my.yaml")

    assert "X-Chat-Id: found in its answers; it accepts ids of the form uuid only" in said(state.findings, Topic.HEADER)
    assert "in the second turn it saw the first" in said(state.findings, Topic.MODEL)
    assert profile.header == "X-Chat-Id"
    assert profile.ids is not None
    assert profile.ids.fits(str(uuid.uuid4()))


def test_a_conversation_that_is_ignored_is_found(model, tmp_path):
    with running("demanding.py", model, "conversation_id") as url:
        state = looked_at(url, probe=model)

    assert "IT IGNORES `conversation`" in said(state.findings, Topic.OFFERS)
    assert written(state, tmp_path / "my.yaml").slugs == "none"


@pytest.mark.parametrize(("script", "demands"), [("responses_only.py", []), ("demanding.py", ["uuid"])])
def test_a_dry_run_tells_all_that_such_a_server_is_asked(script, demands, model):
    with running(script, model, *demands) as url:
        state = looked_at(url)
        visits = asyncio.run(dry_run(url, Profile("it"), RELEASE))
    told = {(each.request.method, _shape(each.request.path)) for each in plan(visits)}

    assert {(request.method, _shape(request.path)) for request, _ in state.transport.exchanges} <= told


def _shape(path: str) -> str:
    return re.sub(r"(?<=/sessions/).+|(?<=/responses/).+|(?<=/conversations/).+", "ID", path)


def test_a_field_of_the_body_is_found_and_a_request_id_is_not_taken_for_a_session(tmp_path):
    with http_server(InTheBody) as url:
        state = looked_at(url)

    assert "thread_key (a field of the body): found in its answers" in said(state.findings, Topic.HEADER)
    assert written(state, tmp_path / "my.yaml").body == "thread_key"


def test_a_wrong_key_that_is_refused_with_400_is_refused():
    with http_server(UnusualRefusal) as url:
        findings = looked_at(url, principals={"alice": KEYS["ALICES_KEY"]}).findings

    assert "a key is required: 401 without a key, 400 with a wrong key (401 is usual for both)" in said(
        findings, Topic.AUTH
    )


def test_a_page_that_answers_every_deletion_has_deleted_nothing():
    with http_server(Page) as page, http_server(Welcoming) as welcoming:
        nothing, turns = looked_at(page).findings, looked_at(welcoming).findings

    assert said(nothing, Topic.CLEANED) == ""
    assert "deleted" not in said(turns, Topic.CLEANED)
    assert "LEFT BEHIND" in said(turns, Topic.CLEANED)


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("0b0e1b2c-0000-4000-8000-00000000000a", "uuid"),
        ("conv_0123456789abcdef01234567", "conv_{hex:24}"),
        ("thread-0b0e1b2c-0000-4000-8000-00000000000a", "thread-{uuid}"),
        ("an ordinary text", ""),
    ],
)
def test_the_form_of_an_id_is_recognised(value, form):
    assert SessionName("header", "X-Chat", value).form == form

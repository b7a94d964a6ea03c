"""The doctor says what a server is, leaves nothing behind that it can take away, and writes a profile that works."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from processes import CONTINUITY, serving, started
from thread_servers import (
    KEYS,
    Elsewhere,
    Failing,
    Moved,
    Page,
    Shy,
    SlowModels,
    Stuck,
    greeting_port,
    http_server,
    silent_port,
)

from continuity_conformance.cli.main import main
from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.doctor import profile_writer as starter
from continuity_conformance.doctor import render as sheet
from continuity_conformance.doctor.findings import Findings, Topic
from continuity_conformance.doctor.state import SurveyState
from continuity_conformance.doctor.survey import survey
from continuity_conformance.run.applicability import Prospect
from continuity_conformance.run.session import Run
from continuity_conformance.suite.release import newest
from continuity_conformance.target.profile import Limits, Profile
from continuity_conformance.target.profile_file import load_profile
from continuity_conformance.target.resolve import resolve
from continuity_conformance.target.server import Server

RELEASE = newest().requirements
EXAMPLES = Path(__file__).parents[3] / "examples"


def looked_at(url: str, profile: Profile | None = None) -> SurveyState:
    return asyncio.run(survey(url, profile or Profile("it", limits=Limits(turn_seconds=5)), RELEASE))


def said(findings: Findings, topic: Topic) -> str:
    return " | ".join(text for about, text in findings.sentences if about is topic)


def test_a_server_that_declares_itself(plain):
    findings = looked_at(plain).findings

    assert findings.error is None
    assert "named in its capabilities; its answers repeat our session id" in said(findings, Topic.HEADER)
    assert "release 1.0; for a single user; derivation content-v1" in said(findings, Topic.SAYS)
    assert "responses, sessions, stored-responses, streaming (from its capabilities)" in said(findings, Topic.OFFERS)
    assert "in the second turn it saw the first" in said(findings, Topic.MODEL)
    assert said(findings, Topic.AUTH) == "a turn is answered without a key"
    assert findings.requests < 10


def test_what_it_made_is_gone(plain):
    with urllib.request.urlopen(f"{plain}/v1/sessions") as answer:
        before = json.load(answer)["data"]
    findings = looked_at(plain).findings
    with urllib.request.urlopen(f"{plain}/v1/sessions") as answer:
        after = json.load(answer)["data"]

    assert findings.left == []
    assert "deleted: 1 session" in said(findings, Topic.CLEANED)
    assert before == after


STARTED = f"""\
name: mine
process:
  start: [{sys.executable}, -m, continuity_server, --port, "{{port}}", --db, "{{folder}}/own.db", --model, "{{probe}}"]
  env: {{CONTINUITY_CONTROLS: the-token}}
controls: {{token: the-token}}
"""


def test_a_profile_with_a_process_needs_no_address(continuity, tmp_path):
    (tmp_path / "mine.yaml").write_text(STARTED)
    done = continuity("doctor", "--profile", "mine.yaml", "--json")
    found = json.loads(done.stdout)
    texts = {each["text"] for each in found["said"]}

    assert done.returncode == 0, done.stderr
    assert found["observed"] == "probe"
    assert found["left_behind"] == []
    assert any(re.fullmatch(r"the kit started it; it was ready after \d+\.\d s", text) for text in texts)
    assert any("kill" in text and "restart" in text for text in texts)
    assert [file.name for file in tmp_path.iterdir() if file.name != "cache"] == ["mine.yaml"]


def controls_of(findings: Findings) -> dict[str, str]:
    return {each.name: each.by for each in findings.controls}


@pytest.fixture(scope="module")
def controlled():
    with serving("--controls", "the-token") as url:
        yield url


def test_each_control_is_listed_with_its_provider_or_with_what_is_missing(controlled):
    findings = looked_at(controlled, Profile("it", token="the-token")).findings
    by_api = {name for name, by in controls_of(findings).items() if by == "by the control API"}
    missing = {each.name: each for each in findings.controls if not each.by}

    assert by_api == {"evict", "compress", "fault", "fork", "link", "lineage"}
    assert {"restart", "kill", "replicas", "cache pressure"} <= missing.keys()
    assert missing["kill"].untested == ["DURABLE-02", "DURABLE-03", "DURABLE-04"]
    assert "no kill (needs `process:`): 3 not tested: DURABLE-02, DURABLE-03" in said(findings, Topic.CONTROLS)
    assert [line for line in sheet.lines(findings) if len(line) > 80] == []


def test_a_missing_control_has_the_name_of_the_list(plain):
    reasons = [each for each in looked_at(plain).findings.missing if each.startswith("no control to ")]

    assert {"no control to fork", "no control to compress, link"} <= set(reasons)
    assert [each for each in reasons if ":" in each] == []


def test_a_wrong_token_is_not_taken_for_controls(controlled):
    findings = looked_at(controlled, Profile("it", token="another")).findings
    untested = {each.id for each, prospect, _ in findings.prospects if prospect is Prospect.NOT_TESTED}

    assert set(controls_of(findings).values()) == {""}
    assert "NO CONTROL API: every path of /conformance/v1 returns 404" in said(findings, Topic.CONTROLS)
    assert "HISTORY-05" in untested


def test_a_control_that_its_api_lacks_is_missing(continuity, monkeypatch):
    """This server has two of the six operations, and answers 404 for a response that it does not know."""
    monkeypatch.setenv("PATH", os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    profile = EXAMPLES / "fastapi" / "profile.yaml"
    found = json.loads(continuity("doctor", "--profile", str(profile), "--json").stdout)

    assert [each["name"] for each in found["controls"] if each["by"] == "by the control API"] == ["evict", "fault"]
    assert {each["name"] for each in found["controls"] if each["by"] is None} >= {"compress", "fork", "link", "lineage"}


def test_a_server_that_ends_at_its_start_shows_its_output(continuity, tmp_path):
    (tmp_path / "mine.yaml").write_text(STARTED.replace("--port", "--prot"))
    done = continuity("doctor", "--profile", "mine.yaml")

    assert done.returncode == 4
    assert "The target ended during its start" in done.stderr
    assert "--prot" in done.stderr


def test_a_target_of_a_plugin_is_examined_by_its_name(continuity):
    done = continuity("doctor", "reference")

    assert done.returncode == 0, done.stderr
    assert "its answers come from the probe model" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no server is named. Give the URL"),
        (["--profile", "bare.yaml"], "does not say how to start the server, and no URL is given. Give the URL"),
        (["reference", "--write", "new.yaml"], "brings its own profile, so none can be written"),
        (["127.0.0.1:8080"], "Write it as http://127.0.0.1:8080"),
    ],
)
def test_a_server_that_cannot_be_examined_ends_in_one_line(continuity, tmp_path, arguments, said):
    (tmp_path / "bare.yaml").write_text("name: mine\n")
    done = continuity("doctor", *arguments)

    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_it_fits_into_80_columns(plain):
    assert [line for line in sheet.lines(looked_at(plain).findings) if len(line) > 80] == []


def test_what_it_foresees_is_what_a_run_finds(plain):
    """On all that is played by steps: whatever is forecast as not tested or not applicable is just that, and what can be tested is decided."""
    foreseen = {each.id: (prospect, each) for each, prospect, _ in looked_at(plain).findings.prospects}
    played = [
        each for _, each in foreseen.values() if each.scenarios and each.area in {"DERIVE", "ECHO", "HISTORY", "SLUG"}
    ]
    with Run(resolve(plain), played) as run:
        found = {each.id: run.result(each.id).verdict for each in played}
    known = {
        Prospect.TESTABLE: Verdict.PASS,
        Prospect.REFUTABLE: Verdict.NOT_TESTED,
        Prospect.NOT_TESTED: Verdict.NOT_TESTED,
        Prospect.NOT_APPLICABLE: Verdict.NOT_APPLICABLE,
    }

    assert found == {each.id: known[foreseen[each.id][0]] for each in played}


def test_a_server_that_wants_a_key(keyed, capsys):
    code = main(["doctor", keyed])
    without = capsys.readouterr()
    findings = looked_at(keyed, Profile("it", principals={"alice": KEYS["ALICES_KEY"]})).findings
    wrong = looked_at(keyed, Profile("it", principals={"alice": "key-of-nobody-at-all"})).findings

    assert code == 2
    assert "a key is required: a chat turn is answered with 401" in " ".join(without.out.split())
    assert without.err.startswith("continuity: ")
    assert "--key-env NAME" in without.err
    assert "401 without a key, 401 with a wrong key, and yours is accepted" in said(findings, Topic.AUTH)
    assert wrong.exit_code == 2
    assert "the key is refused" in said(wrong, Topic.AUTH)


def test_a_profile_for_a_server_behind_a_gateway_works(behind, continuity, tmp_path):
    """TLS with an authority of our own, a path, and a field of its own for keys: the doctor finds it, and the whole kit uses what it wrote."""
    url = f"{behind.url}/v1"
    keys = ("--key-env", "ALICES_KEY", "--second-key-env", "$BOBS_KEY", "--auth", "X-Api-Key: {key}")
    done = continuity("doctor", url, "--ca", str(behind.ca), *keys, "--write", "my.yaml", "--json")
    found = json.loads(done.stdout)
    written = (tmp_path / "my.yaml").read_text()
    # The openai client; answers held against the document; keys that are none; bytes over a socket of our own.
    kit = ["ECHO-02", "ECHO-09", "ECHO-12", "ISOLATE-01", "ISOLATE-03"]
    played = continuity("run", *kit, "--target", url, "--profile", "my.yaml")

    assert done.returncode == 0, done.stderr
    assert found["header"] == "X-Hermes-Session-Id"
    assert "tenants" in found["offers"]
    assert found["left_behind"] == []
    assert "principals: {alice: $ALICES_KEY, bob: $BOBS_KEY}" in written
    assert 'auth: "X-Api-Key: {key}"' in written
    assert not [key for key in KEYS.values() if key in done.stdout + done.stderr + written + played.stdout]
    assert played.returncode == 0, played.stdout + played.stderr
    assert [line.partition(" (")[0] for line in played.stdout.splitlines() if "): pass" in line] == kit


@pytest.mark.parametrize("command", [["doctor"], ["run", "ECHO-01", "--target"]])
def test_a_certificate_that_nobody_trusts_is_told_in_one_line(behind, command, capsys):
    code = main([*command, behind.url])
    said = capsys.readouterr().err

    assert code == 3
    assert "its certificate is not trusted" in said
    assert "--ca ca.pem" in said
    assert len(said.splitlines()) == 1


def test_a_wrong_path_is_put_right(plain):
    findings = looked_at(f"{plain}/some/gateway").findings

    assert findings.url == plain
    assert f"not at {plain}/some/gateway/v1 (404 " in said(findings, Topic.API)
    assert findings.exit_code == 0


def test_a_web_page_is_no_server_of_ours():
    with http_server(Page) as url:
        findings = looked_at(url).findings

    assert findings.exit_code == 3
    assert (
        'no OpenAI-compatible server at this address: POST /v1/chat/completions returns 200 text/html "Welcome"'
        in str(findings.error)
    )


def test_a_port_that_is_none_of_http_is_told_by_what_it_says():
    with greeting_port(b"220 mail.example ESMTP\r\n") as url:
        findings = looked_at(url).findings

    assert findings.exit_code == 3
    assert "it does not speak HTTP; it sends: 220 mail.example ESMTP" in str(findings.error)


def test_tls_behind_http_and_http_behind_tls(behind, plain):
    assert "try the same address with https://" in str(looked_at(behind.url.replace("https", "http")).findings.error)
    assert "TLS: it does not speak TLS. Try the same address with http://" in str(
        looked_at(plain.replace("http", "https")).findings.error
    )


def test_a_server_that_hangs_is_waited_for_no_longer_than_said():
    with silent_port() as (url, _):
        began = time.monotonic()
        findings = looked_at(url, Profile("it", limits=Limits(turn_seconds=1))).findings

    assert findings.exit_code == 3
    assert "The server accepts the connection, but there is no complete answer in 1 s" in str(findings.error)
    assert time.monotonic() - began < 3


def test_a_server_whose_list_of_models_hangs_is_examined_if_it_answers_at_all():
    with http_server(SlowModels) as url:
        findings = looked_at(url, Profile("it", limits=Limits(turn_seconds=1))).findings

    assert findings.error is None
    assert "GET /v1/models returns no list of models: no complete answer in 1 s" in said(findings, Topic.API)


def test_a_turn_that_hangs_ends_the_visit():
    with http_server(Stuck) as url:
        began = time.monotonic()
        findings = looked_at(url, Profile("it", limits=Limits(turn_seconds=1))).findings

    assert findings.exit_code == 1
    assert "A plain chat turn fails: no complete answer in 1 s" in str(findings.error)
    assert time.monotonic() - began < 4


def test_a_server_that_moved_says_where_to():
    with http_server(Moved) as url:
        findings = looked_at(url).findings

    assert findings.exit_code == 1
    assert "301, a redirect to https://gateway.example/v1" in str(findings.error)


def test_a_path_of_the_document_is_found_under_any_address():
    server = Server("https://gateway.example/some/path", Profile("it"))

    assert server.document_path("/some/path/v1/models") == "/v1/models"
    assert Server("http://127.0.0.1:8080", Profile("it")).document_path("/v1/models") == "/v1/models"


def test_a_closed_port_and_an_unknown_name(capsys):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        code = main(["doctor", f"http://127.0.0.1:{listener.getsockname()[1]}"])
    closed = capsys.readouterr()
    unknown = looked_at("http://nobody.invalid").findings

    assert code == 3
    assert (closed.out, len(closed.err.splitlines())) == ("", 1)
    assert "The name nobody.invalid is not known" in str(unknown.error)


def test_a_turn_that_fails_is_told_with_what_the_server_says():
    with http_server(Failing) as url:
        findings = looked_at(url).findings

    assert findings.exit_code == 1
    assert "there is no model default" in str(findings.error)


def test_a_header_that_nobody_announced_is_found(tmp_path):
    with http_server(Shy) as url:
        state = looked_at(url)
    text = starter.text(state.findings, state.profile, starter.AccessOptions(), tmp_path / "my.yaml")

    assert "X-My-Session: found in its answers; it accepts our session id there" in said(state.findings, Topic.HEADER)
    assert "header: X-My-Session" in text
    assert "offers: []" in text
    assert "streaming" in said(state.findings, Topic.OFFERS).partition("not: ")[2]
    assert "LEFT BEHIND" in said(state.findings, Topic.CLEANED)
    assert all(left.startswith("session ") for left in state.findings.left)


def test_sessions_that_are_elsewhere_are_found_and_deleted():
    with http_server(Elsewhere) as url:
        state = looked_at(url)

    assert (state.profile.sessions, state.profile.session_field) == ("/api/sessions", "session")
    assert "sessions" in state.findings.target.offers
    assert state.findings.left == []
    assert f"deleted: {len(Elsewhere.deleted)} sessions" in said(state.findings, Topic.CLEANED)
    assert len(set(Elsewhere.deleted)) >= 3


def test_a_model_alone_keeps_nothing():
    with started([CONTINUITY, "model"], stdout=subprocess.PIPE, text=True) as model:
        url = re.search(r"http://[0-9.:]+", model.stdout.readline())[0]
        blind = looked_at(url).findings
        seeing = looked_at(url, Profile("it", probe=url)).findings
        model.terminate()

    assert "give its address with --probe URL" in said(blind, Topic.MODEL)
    assert "did NOT see the first: no conversation is kept by X-Hermes-Session-Id, nor by 7 other" in said(
        seeing, Topic.MODEL
    )
    assert seeing.target is not None
    assert seeing.target.options["tells"] == "nothing"
    assert blind.exit_code == seeing.exit_code == 0


def test_a_profile_that_is_there_is_not_written_over(tmp_path):
    (tmp_path / "my.yaml").write_text("name: mine\n")
    code = main(["doctor", "http://127.0.0.1:9", "--write", str(tmp_path / "my.yaml")])

    assert code == 2
    assert (tmp_path / "my.yaml").read_text() == "name: mine\n"


@pytest.mark.parametrize("name", ["127.0.0.1:8080", "yes", "a: b # c", "ключ"])
def test_what_is_written_can_be_read(name, plain, tmp_path, monkeypatch):
    monkeypatch.setenv("A_KEY", "x")
    state = looked_at_once(plain)
    profile = replace(
        state.profile, name=name, options={"tells": "nothing"}, sessions="/api/sessions", session_field="session"
    )
    given = starter.AccessOptions({"alice": "$A_KEY"}, {"X-Tenant": "north: 1"})
    path = tmp_path / "my.yaml"
    starter.write(path, starter.text(replace(state.findings, declared=False), profile, given, path))
    read = load_profile(path)

    assert (read.name, read.options) == (name, {"tells": "nothing"})
    assert (read.sessions, read.session_field) == ("/api/sessions", "session")
    assert (read.principals, read.headers) == ({"alice": "x"}, {"X-Tenant": "north: 1"})
    assert read.offers == state.findings.target.offers - {"chat"}


@pytest.mark.parametrize(
    "wrong",
    [
        ("--header", "Authorization: Bearer abc"),
        ("--header", "nothing"),
        ("--auth", "X-Api-Key"),
        ("--key-env", "NOBODY_SET_THIS"),
        ("--ca", "nowhere.pem"),
        ("--second-key-env", "BOBS_KEY"),
    ],
)
def test_mistakes_are_told_before_anything_is_sent(wrong, monkeypatch, capsys):
    monkeypatch.setenv("BOBS_KEY", KEYS["BOBS_KEY"])

    assert main(["doctor", "http://127.0.0.1:9", *wrong]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


_LOOKED_AT: dict[str, SurveyState] = {}


def looked_at_once(url: str) -> SurveyState:
    """The same for several tests that only read."""
    if url not in _LOOKED_AT:
        _LOOKED_AT[url] = looked_at(url)
    return _LOOKED_AT[url]

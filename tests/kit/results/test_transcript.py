"""The transcript of a scenario: what its maintainer reads, and pastes into an issue."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from continuity_conformance.core.text import without_middle
from continuity_conformance.core.verdicts import Evidence, Result, Verdict
from continuity_conformance.results import transcript
from continuity_conformance.results.evidence import as_note
from continuity_conformance.results.redaction import BODY_KEPT, Redactor
from continuity_conformance.run.session import Run
from continuity_conformance.scenario.record import InterventionLog
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile
from continuity_spec import load_spec

FAULT = "by the control API: POST /conformance/v1/fault"
NEW_PROCESS = "to its process, then a new one was started"
TOLD = {
    "SLUG-03": [("evict {response: $gone}   2", "by the control API: POST /conformance/v1/evict {response_id: resp_")],
    "SLUG-05": [("evict {response: $gone, by: pressure}   2", "41 responses stored on top, in a cache that holds 40")],
    "HISTORY-06": [
        ("break_store reads   2", f"{FAULT} {{what: read, on: true}}"),
        ("mend_store   4", f"{FAULT} {{what: read, on: false}}"),
    ],
    "COMPRESS-05": [("control {fork: {session_id: $old}}   2", "by the control API: POST /conformance/v1/fork")],
    "COMPRESS-12": [("model: summary fails   2", "the probe model does so when it is asked")],
    "DURABLE-01": [("restart   ", f"SIGTERM {NEW_PROCESS}")],
    "DURABLE-03": [("kill   3.1.1", f"SIGKILL {NEW_PROCESS}")],
    "MIGRATE-02": [
        ("legacy {rows: [", "its process was ended, its database replaced by an old one, and"),
        ("start_previous   1", "its process was ended, and that of its previous release started without any data"),
        ("upgrade   3", "the process of the previous release was ended, and this release started on its data"),
    ],
    "ISOLATE-02": [("start the same target with no key configured", "another process, at http://127.0.0.1:")],
}


def results(*ids: str, defect: str = "") -> dict[str, Result]:
    requirements = [each for each in load_spec().requirements if each.id in ids]
    with Run(resolve(None, reference_profile((f"--defect={defect}",) if defect else ())), requirements) as run:
        return {each.id: run.result(each.id) for each in requirements}


@pytest.fixture(scope="module")
def played() -> dict[str, Result]:
    return results(*TOLD, "ISOLATE-10")


@pytest.mark.parametrize("id_", TOLD)
def test_what_was_done_to_the_target_stands_in_the_transcript(played: dict[str, Result], id_: str):
    lines = [line.strip() for line in transcript.lines(played[id_])]
    done = [(does.partition(" s  ◆ ")[2], how) for does, how in pairwise(lines) if " s  ◆ " in does]

    assert played[id_].verdict is Verdict.PASS
    for does, how in TOLD[id_]:
        assert [each for each in done if each[0].startswith(does) and each[1].startswith(how)], done


def scenario(result: Result, name: str) -> Evidence:
    return next(each for each in result.evidence if each.scenario == name)


def test_it_stands_where_it_was_done(played: dict[str, Result]):
    """In the middle of two turns that had begun and were not over."""
    evidence = scenario(played["DURABLE-03"], "several sessions at once")
    told = transcript.in_order(evidence.exchanges, evidence.interventions or ())

    assert [each["step"] for each in told][2:6] == ["3", "3.1", "3.1.1", "4"]


def test_an_answer_that_the_model_was_not_called_for_says_so(played: dict[str, Result]):
    result = played["ISOLATE-10"]
    alone = replace(result, evidence=[scenario(result, "sessions named by the client")])
    saw = [line.strip() for line in transcript.lines(alone) if " saw: " in line]

    assert saw[:3] == [
        'the model saw: ["red"]',
        'the answer of an earlier call of the model (step 1), which saw: ["red"]',
        'the model saw: ["red"]',
    ]


def test_a_failure_tells_the_eviction_between_the_two_requests():
    failure = results("SLUG-03", defect="slug-forks-on-eviction")["SLUG-03"].failure

    assert re.search(r" → POST \S+   1\n.* ◆ evict \{response: \$gone\}   2\n.* → POST \S+   3\n", failure, re.DOTALL)


def test_a_failure_tells_how_a_stream_ended_and_that_a_rotation_was_due():
    failure = results("COMPRESS-07", defect="stream-never-tells-tip")["COMPRESS-07"].failure
    answer = failure.rpartition("← 200")[2]

    assert "the target then asked the model for a summary\n" in failure
    assert '"finish_reason":"stop"' in answer
    assert "data: [DONE]\n" in answer


def test_of_a_long_stream_head_and_tail_are_kept_and_the_rest_is_counted():
    stream = Redactor(()).stream(f"data: first {'x' * 9000} data: [DONE]")
    twice = without_middle(stream, 1200)

    assert stream.startswith("data: first x")
    assert stream.endswith("x data: [DONE]")
    assert f"({9025 - BODY_KEPT} characters left out)" in stream
    assert twice.endswith("x data: [DONE]")
    assert f"({9025 - 1200} characters left out)" in twice
    assert without_middle("short", 5) == "short"


def exchange(**fields: str) -> dict[str, object]:
    request = {"method": "GET", "url": "/", "headers": [], "body": ""}
    answer = {"status": 200, "headers": [list(each) for each in fields.items()], "body": ""}
    told = {"at": 0.0, "seconds": 0.1, "step": "1", "error": "", "seen": None}
    return {**told, "request": request, "answer": answer}


@pytest.mark.parametrize(
    ("about", "shown"),
    [
        ("a session", ["X-Hermes-Session-Id: a"]),
        ("X-Frame-Options: absent", ["X-Frame-Options: DENY", "X-Hermes-Session-Id: a"]),
    ],
)
def test_what_stands_on_every_answer_is_shown_only_where_it_is_asked_about(about: str, shown: list[str]):
    fields = {"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "X-Hermes-Session-Id": "a"}

    assert [line.strip() for line in transcript.entry_lines(exchange(**fields), about)][2:] == shown


def test_a_lost_connection_says_when_it_was_lost():
    told = {**exchange(), "answer": None, "error": "connection lost"}

    assert list(transcript.entry_lines(told, ""))[1:] == [" +0.100 s  ← connection lost"]


def test_no_secret_is_in_an_intervention():
    note = InterventionLog().intervention("1", "control {say: key-of-alice}", "POST /evict/key-of-alice")

    assert "key-of-alice" not in str(as_note(note, Redactor(("key-of-alice",))))


def test_no_key_is_in_the_step_that_sent_nearly_the_right_one():
    profile = reference_profile(("--defect=key-prefix-accepted",))
    with Run(resolve(None, profile), [load_spec().requirement("ISOLATE-01")]) as run:
        result = run.result("ISOLATE-01")

    assert "Bearer ***" in result.evidence[0].step
    assert not [key for key in profile.principals.values() if key[:-1] in str(result)]

"""What an error must not tell, and what it may."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from continuity_conformance.core.failure import Unmet, Untested
from continuity_conformance.http.messages import Answer, Request
from continuity_conformance.scenario.expect import leaks as discretion
from continuity_conformance.scenario.request_builder import WRONG_KEY

KEY = "key-of-alice"
PATH = "http://x/v1/responses/%2Ftmp%2Fx%2Fsecret"
STAGE = SimpleNamespace(target=SimpleNamespace(profile=SimpleNamespace(secrets=(KEY,))))


def told(message, status=400, content_type="application/json", sent=None, headers=(), **error):
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **error}}
    return judged(body, status, content_type, sent, headers)


def judged(body, status=400, content_type="application/json", sent=None, headers=()):
    answer = Answer(status, (("Content-Type", content_type),), json.dumps(body), body)
    exchange = SimpleNamespace(answer=answer, request=Request("POST", PATH, headers, sent))
    record = SimpleNamespace(context=STAGE)
    try:
        asyncio.run(discretion.envelope(record, exchange, True))
        asyncio.run(discretion.discreet(record, exchange, True))
    except Unmet as trouble:
        return f"{trouble.expected}: {trouble.actual}"
    return ""


@pytest.mark.parametrize(
    "message",
    [
        "There is no response with this id.",
        "The id has more than 256 characters. Send a shorter one.",
        "Select another model from the list, and insert it into the body.",
        "There is nothing under /v1/nowhere.",
        "See https://example.com/usr/guide for how to update and set it.",
        "The path /v1/sessions/{id} takes GET and DELETE.",
    ],
)
def test_an_ordinary_message_is_clean(message):
    assert told(message) == ""


@pytest.mark.parametrize(
    ("secret", "message", "leak"),
    [
        ("tok", "Send a known key as a bearer token.", ""),
        ("token", "Send a known token.", ""),
        ("sk-a", "There is no task-agent.", ""),
        ("sk-a", "The key sk-a is wrong.", "a key"),
        ("qwhzutnkpdwe", "wrong: qwhzutnkpdwe", "a key"),
    ],
)
def test_a_secret_that_is_part_of_a_word_or_a_word_itself_is_no_leak(monkeypatch, secret, message, leak):
    monkeypatch.setattr(STAGE.target.profile, "secrets", (secret,))

    assert told(message) == (leak and f"an error without {leak} in it: {leak} in it")


@pytest.mark.parametrize(
    ("message", "leak"),
    [
        ('Traceback (most recent call last):\n  File "/srv/a.py", line 3', "a trace"),
        ("Error: no\n    at Server.answer (/srv/gateway/index.js:12:7)", "a trace"),
        ("failed in store.py:117", "a trace"),
        ("goroutine 1 [running]:", "a trace"),
        ("cannot open /var/lib/gateway/state.db", "a path"),
        ("cannot open '/home/ann/.hermes/state.db'", "a path"),
        ("cannot open C:\\Users\\ann", "a path"),
        ("in site-packages", "a path"),
        ("SELECT data FROM responses WHERE id=?", "SQL"),
        ("sqlite3.OperationalError: no such table: responses", "SQL"),
        ("UNIQUE constraint failed: sessions.id", "SQL"),
        (f"unknown key {KEY}", "a key"),
        pytest.param(f"unknown key {WRONG_KEY}", "a key", id="the wrong key"),
    ],
)
def test_a_message_that_shows_the_inside_is_found(message, leak):
    assert f"without {leak} in it" in told(message)


def test_what_the_request_itself_said_is_no_leak():
    assert told("The id /etc/passwd is refused.", headers=(("X-Session", "/etc/passwd"),)) == ""
    assert told("No such slug: SELECT a FROM b.", sent={"conversation": "SELECT a FROM b"}) == ""
    assert told("Response not found: /tmp/x/secret") == ""


def test_another_path_than_the_one_that_was_sent_is_a_leak():
    assert "without a path in it" in told("Not found: /tmp/store/secret")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"detail": "no"},
        {"error": "no"},
        {"error": {"message": "no"}},
        {"error": {"message": 5, "type": "t", "param": None, "code": None}},
        [],
        None,
    ],
)
def test_what_is_no_envelope_is_found(body):
    assert judged(body).startswith('{"error"')


def test_where_the_parser_refuses_no_envelope_is_asked_for():
    with pytest.raises(Untested, match="parser"):
        judged({}, headers=(("X-Session", "a\x00b"),))

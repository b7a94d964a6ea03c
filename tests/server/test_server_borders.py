"""What every request crosses: keys, header checks, errors, CORS, idempotency, capabilities, controls."""

import json
import socket
from urllib.parse import quote, urlsplit

import pytest
from reference_process import HEADER, said

ORIGIN = {"Origin": "https://app.example"}


def raw(server, value):
    """The status of a chat with exactly these bytes as its continuity header."""
    parts = urlsplit(server.url)
    body = b'{"model":"m","messages":[{"role":"user","content":"a"}]}'
    head = (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer key-of-alice\r\n"
        b"Content-Length: " + str(len(body)).encode() + b"\r\n" + HEADER.encode() + b":" + value + b"\r\n\r\n"
    )
    with socket.create_connection((parts.hostname, parts.port), timeout=5) as connection:
        connection.sendall(head + body)
        with connection.makefile("rb") as answer:
            return int(answer.readline().split()[1]), answer.read()


@pytest.mark.parametrize(
    "value",
    [b"a\tb", b"a\x00b", b"a\rb", b"a\x1bb", b"a\x7fb", b"a\xffb", b"x" * 257, b"a\xc2\x85b", b"a b", "é".encode()],
)
def test_a_bad_id_is_refused(server, value):
    assert raw(server, value)[0] == 400


def test_an_id_of_visible_ascii_comes_back_byte_for_byte(server):
    status, rest = raw(server, b"  !#$%&/()=?,;~  ")

    assert status == 200
    assert f"{HEADER}: !#$%&/()=?,;~\r\n".encode() in rest


def test_ids_with_path_characters_are_opaque(server):
    _, headers, _ = server.chat("a", "../../x")

    assert headers[HEADER] == "../../x"
    assert server.stored("../../x")[:1] == [("user", "a")]


@pytest.mark.parametrize(
    "path", ["/v1/models", "/v1/capabilities", "/v1/sessions/x", "/nowhere", "/conformance/v1/fault"]
)
@pytest.mark.parametrize("key", [None, "wrong", "clé"])
def test_without_a_known_key_everything_is_401(server, path, key):
    status, headers, body = server.request("GET", path, key=key)

    assert (status, body["error"]["code"]) == (401, "invalid_api_key")
    assert HEADER not in headers


def test_health_needs_no_key(server):
    assert server.request("GET", "/health", key=None)[0] == 200


@pytest.mark.parametrize(
    ("request_", "status", "code"),
    [
        (("GET", "/nowhere", None), 404, "not_found"),
        (("GET", "/v1/chat/completions", None), 405, "method_not_allowed"),
        (("POST", "/v1/chat/completions", b"{"), 400, "invalid_json"),
        (("POST", "/v1/chat/completions", b'{"x": NaN}'), 400, "invalid_json"),
        (("POST", "/v1/chat/completions", b'{"x": "\\ud800"}'), 400, "invalid_json"),
        (("POST", "/v1/chat/completions", b"\xff"), 400, "invalid_json"),
        (("POST", "/v1/chat/completions", b"[" * 100_000), 400, "invalid_json"),
        (("POST", "/v1/chat/completions", b" " * (16 * 2**20 + 1)), 413, "request_too_large"),
        (("POST", "/v1/chat/completions", b"[]"), 400, "invalid_request"),
        (("POST", "/v1/chat/completions", {}), 400, "invalid_request"),
        (("POST", "/v1/chat/completions", {"model": "m", "messages": "a"}), 400, "invalid_request"),
        (("POST", "/v1/chat/completions", {"model": "m", "messages": [{"role": "user"}]}), 400, "invalid_request"),
        (
            ("POST", "/v1/chat/completions", {"model": "m", "messages": [{"role": "system", "content": "a"}]}),
            400,
            "invalid_request",
        ),
        (
            ("POST", "/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": [5]}]}),
            400,
            "invalid_request",
        ),
        (
            (
                "POST",
                "/v1/chat/completions",
                {"model": "m", "messages": [{"role": "user", "content": "a"}], "stream": 1},
            ),
            400,
            "invalid_request",
        ),
        (("POST", "/v1/responses", {"input": "a"}), 400, "invalid_request"),
        (("POST", "/v1/responses", {"model": "m", "input": []}), 400, "invalid_request"),
        (("POST", "/v1/responses", {"model": "m", "input": [{"type": "nothing"}]}), 400, "invalid_request"),
        (("GET", "/v1/responses/resp_x", None), 404, "response_not_found"),
        (("GET", "/v1/sessions/x", None), 404, "session_not_found"),
        (("POST", "/conformance/v1/evict", {"response_id": "x"}), 404, "not_found"),
    ],
)
def test_errors_are_the_openai_envelope(server, request_, status, code):
    got, headers, said_ = server.request(*request_)

    assert (status, code) == (got, said_["error"]["code"])
    assert {"message", "type", "param", "code"} == set(said_["error"])
    assert headers["Cache-Control"] == "no-store"


def test_a_browser_may_send_and_read_the_header(server):
    status, preflight, _ = server.request("OPTIONS", "/v1/chat/completions", headers=ORIGIN, key=None)
    _, answer, _ = server.chat("a", headers=ORIGIN)
    _, stranger, _ = server.chat("a", headers={"Origin": "https://evil.example"})

    assert status == 204
    assert HEADER in preflight["Access-Control-Allow-Headers"]
    assert HEADER in answer["Access-Control-Expose-Headers"]
    assert answer["Access-Control-Allow-Origin"] == ORIGIN["Origin"]
    assert "Access-Control-Allow-Origin" not in stranger


def test_the_same_idempotency_key_gives_the_same_answer_and_one_turn(server, session):
    key = {"Idempotency-Key": "k"}
    _, _, first = server.chat("a", session, headers=key)
    _, _, second = server.chat("a", session, headers=key)
    _, _, elsewhere = server.chat("a", f"{session}-b", headers=key)
    _, _, his = server.chat("a", session, headers=key, key="key-of-bob")
    status, _, _ = server.chat("b", session, headers=key)

    assert first == second
    assert len({body["id"] for body in (first, elsewhere, his)}) == 3
    assert status == 409
    assert [("user", "a"), ("assistant", said(first))] == server.stored(session)


def test_a_streamed_replay_repeats_the_stream(server, session):
    key = {"Idempotency-Key": "k"}
    first, second = (server.chat("a", session, headers=key, stream=True)[2] for _ in range(2))

    assert first.split("\n\n")[-3] == second.split("\n\n")[-3]


def test_a_replay_without_a_session_is_the_principals(server, session):
    key = {"Idempotency-Key": session}
    first, second = (server.respond("a", headers=key)[2] for _ in range(2))

    assert first == second


def test_the_capabilities_name_header_options_and_offers(server):
    _, _, body = server.request("GET", "/v1/capabilities")
    continuity = body["continuity"]

    assert (continuity["header"], continuity["single_user"], continuity["controls"]) == (HEADER, False, True)
    assert {"cors", "tenants", "responses"} <= set(continuity["offers"])
    assert continuity["options"]["derivation"] == "content-v1"


def test_the_token_of_the_controls_is_needed(server):
    status, _, _ = server.request("POST", "/conformance/v1/fault", {"what": "read"}, {"X-Conformance-Token": "wrong"})

    assert status == 404


HELLO = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


def post(server, body, **headers):
    status, _, said = server.request("POST", "/v1/chat/completions", body, headers)
    return status, said["error"]["code"]


@pytest.mark.parametrize("role", [{}, [], None, 7, "pirate"])
def test_a_role_of_any_type_is_refused(server, role):
    assert post(server, {"model": "m", "messages": [{"role": role, "content": "a"}]}) == (400, "invalid_request")
    assert server.respond([{"role": role, "content": "a"}])[0] == 400


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/jsonp"])
def test_a_body_that_is_announced_as_something_else_is_refused(server, kind):
    body = json.dumps(HELLO).encode()

    assert post(server, body, **{"Content-Type": kind}) == (415, "unsupported_media_type")


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON", "application/vnd.api+json"])
def test_json_by_any_of_its_names_is_taken(server, kind):
    body = json.dumps(HELLO).encode()

    assert server.request("POST", "/v1/chat/completions", body, {"Content-Type": kind})[0] == 200


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a": "\xff"}',
        json.dumps(HELLO).encode("utf-16"),
        b'{"a": "\\ud800"}',
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": [-1e999]}',
        b"",
    ],
)
def test_bytes_that_are_no_json_in_utf8_are_refused(server, raw):
    assert post(server, raw) == (400, "invalid_json")


@pytest.mark.parametrize("depth", [101, 900, 2000, 100_000])
def test_a_body_that_is_nested_too_deep_is_refused(server, depth):
    raw = json.dumps(HELLO)[:-1] + ', "a": ' + "[" * depth + "]" * depth + "}"

    assert post(server, raw.encode()) == (400, "invalid_json")


@pytest.mark.parametrize(
    "field",
    [
        {"max_tokens": -1},
        {"max_tokens": 1.5},
        {"temperature": "hot"},
        {"temperature": 2.1},
        {"n": True},
        {"stop": ["a"] * 5},
        {"metadata": {"a": 1}},
        {"tools": [{}]},
        {"stream_options": {"include_usage": "yes"}},
    ],
    ids=str,
)
def test_fields_of_the_model_have_their_types_and_bounds(server, field):
    assert post(server, {**HELLO, **field}) == (400, "invalid_request")


@pytest.mark.parametrize(
    "field", [{"max_tokens": None}, {"max_tokens": 2.0}, {"temperature": 0}, {"stop": []}], ids=str
)
def test_null_and_the_bounds_themselves_are_taken(server, field):
    assert server.request("POST", "/v1/chat/completions", {**HELLO, **field})[0] == 200


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=a", "after=", f"after={'a' * 257}"])
def test_a_page_that_nobody_can_mean_is_refused(server, query):
    assert server.request("GET", f"/v1/sessions?{query}")[0] == 400


def test_a_method_that_a_path_does_not_take_is_told_those_that_it_takes(server):
    status, headers, body = server.request("PUT", "/v1/responses/r", {})

    assert (status, body["error"]["code"]) == (405, "method_not_allowed")
    assert {"GET", "DELETE"} <= set(headers["Allow"].split(", "))


@pytest.mark.parametrize("name", ["${x}", "{}", "a,b", "a%b", "a;b"])
def test_a_session_of_any_name_can_be_read(server, session, name):
    ident = f"{session}-{name}"
    server.chat("a", ident.encode().decode("latin-1"))
    status, _, body = server.request("GET", f"/v1/sessions/{quote(ident, safe='')}")

    assert (status, body["id"]) == (200, ident)

"""Slugs, branches, eviction and deletion."""

from urllib.parse import quote

import pytest
from reference_process import HEADER, KEYS, running, said
from scripted_model import Hold


def seen(body):
    """The user marks that the built-in model saw."""
    saw = said(body).split(" saw ")[1].rstrip("]")
    return [word.removeprefix("u:") for word in saw.split() if word.startswith("u:")]


def mark(number):
    return f"[u:{number:08x}]"


def test_a_slug_keeps_its_session_and_history_after_its_response_was_evicted(server, session):
    _, first, body = server.respond(mark(1), conversation=session)
    server.control("evict", response_id=body["id"])
    _, second, again = server.respond(mark(2), conversation={"id": session})

    assert first[HEADER] == second[HEADER]
    assert seen(again) == ["00000001", "00000002"]
    assert server.request("GET", f"/v1/responses/{body['id']}")[0] == 404


def test_the_oldest_response_is_evicted_when_there_are_too_many(server, session):
    _, first, body = server.respond(mark(1), conversation=session)
    for _ in range(5):
        server.respond("more")
    _, second, _ = server.respond(mark(2), conversation=session)

    assert server.request("GET", f"/v1/responses/{body['id']}")[0] == 404
    assert first[HEADER] == second[HEADER]


@pytest.mark.parametrize("use", ["read", "continued"])
def test_the_response_that_was_used_last_is_evicted_last(server, use):
    _, _, old = server.respond("a")
    _, _, other = server.respond("b")
    for _ in range(3):
        server.respond("more")
    if use == "read":
        server.request("GET", f"/v1/responses/{old['id']}")
    server.respond("c", **({"previous_response_id": old["id"]} if use == "continued" else {}))

    assert server.request("GET", f"/v1/responses/{other['id']}")[0] == 404
    assert server.request("GET", f"/v1/responses/{old['id']}")[0] == 200


def test_one_principals_responses_do_not_push_out_anothers(server):
    _, _, hers = server.respond("a")
    for _ in range(6):
        server.respond("more", key="key-of-bob")

    assert server.request("GET", f"/v1/responses/{hers['id']}")[0] == 200


def test_an_unstored_turn_of_a_new_slug_leaves_the_slug_new(server, session):
    server.chat("a", session)
    server.respond("b", conversation=session, store=False, headers={HEADER: session})
    status, _, _ = server.respond("c", conversation=f"{session} x", headers={HEADER: session})
    _, fresh, _ = server.respond("d", conversation=session)

    assert status == 200
    assert session != fresh[HEADER]


def test_the_fallback_of_a_slug_is_logged(tmp_path):
    with running("--db", str(tmp_path / "c.db"), *KEYS) as server:
        _, headers, body = server.respond("a", conversation="my slug")
        server.control("evict", response_id=body["id"])
        server.respond("b", conversation="my slug")
        server.stop()

        logged = [line for line in server.log.splitlines() if "my slug" in line]
        assert len(logged) == 1
        assert "INFO" in logged[0]
        assert headers[HEADER] in logged[0]


def test_an_older_response_branches_and_the_newer_turns_stay(server):
    _, line, first = server.respond(mark(1))
    _, _, second = server.respond(mark(2), previous_response_id=first["id"])
    _, apart, branch = server.respond(mark(3), previous_response_id=first["id"])
    _, still, third = server.respond(mark(4), previous_response_id=second["id"])

    assert seen(branch) == ["00000001", "00000003"]
    assert seen(third) == ["00000001", "00000002", "00000004"]
    assert line[HEADER] == still[HEADER] != apart[HEADER]


def test_store_false_writes_nothing(server, session):
    server.respond(mark(1), conversation=session)
    _, _, unstored = server.respond(mark(2), conversation=session, store=False)
    _, _, third = server.respond(mark(3), conversation=session)

    assert seen(third) == ["00000001", "00000003"]
    assert server.request("GET", f"/v1/responses/{unstored['id']}")[0] == 404


def test_a_deleted_response_is_gone_and_its_slug_goes_on(server, session):
    _, first, body = server.respond(mark(1), conversation=session)
    _, _, deleted = server.request("DELETE", f"/v1/responses/{body['id']}")
    _, second, _ = server.respond(mark(2), conversation=session)

    assert deleted == {"id": body["id"], "object": "response", "deleted": True}
    assert first[HEADER] == second[HEADER]
    assert server.respond("x", previous_response_id=body["id"])[0] == 404


def test_a_header_alone_selects_the_session_of_a_response(server, session):
    server.chat(mark(1), session)
    _, headers, body = server.respond(mark(2), headers={HEADER: session})

    assert session == headers[HEADER]
    assert seen(body) == ["00000001", "00000002"]


def test_a_header_that_contradicts_the_slug_is_refused(server, session):
    server.respond("a", conversation=session)
    status, _, body = server.respond("b", conversation=session, headers={HEADER: "another"})

    assert (status, body["error"]["code"]) == (409, "session_conflict")


def test_a_new_slug_binds_to_the_headers_session_once(server, session):
    server.chat(mark(1), session)
    _, headers, body = server.respond(mark(2), conversation=session, headers={HEADER: session})
    status, _, _ = server.respond("c", conversation=f"{session} again", headers={HEADER: session})

    assert session == headers[HEADER]
    assert seen(body) == ["00000001", "00000002"]
    assert status == 409


@pytest.mark.parametrize("slug", ["", "x" * 257, " " * 257, 5, [], {"id": 5}, {"id": ""}, {}])
def test_what_is_no_slug_is_refused(server, slug):
    assert server.respond("a", conversation=slug)[0] == 400


@pytest.mark.parametrize(
    "slug", ["x" * 256, "Zürich \N{SNOWMAN}", "'; DROP TABLE sessions; --", "../../etc", " ", 'a"b']
)
def test_any_other_text_is_a_slug(server, slug):
    assert server.respond("a", conversation=slug)[0] == 200


def test_slug_and_previous_response_id_exclude_each_other(server):
    _, _, body = server.respond("a", conversation="x", previous_response_id="resp_1")

    assert body["error"]["code"] == "mutually_exclusive_parameters"


def test_deleting_a_session_makes_everything_of_it_unknown(server, session):
    _, headers, body = server.respond(mark(1), conversation=session)
    ident = headers[HEADER]
    status, _, deleted = server.request("DELETE", f"/v1/sessions/{ident}")
    _, anew, second = server.respond(mark(2), conversation=session)

    assert (status, deleted["deleted"]) == (200, True)
    assert ident != anew[HEADER]
    assert seen(second) == ["00000002"]
    assert server.request("GET", f"/v1/responses/{body['id']}")[0] == 404
    assert server.request("GET", f"/v1/sessions/{ident}")[0] == 404


def test_a_principals_sessions_are_listed_newest_first_page_by_page(server, session):
    for name in ("x", "y", "z"):
        server.chat("a", f"{session}-{name}")
    _, _, page = server.request("GET", "/v1/sessions?limit=2")
    _, _, rest = server.request("GET", f"/v1/sessions?limit=1&after={quote(page['data'][-1]['id'])}")
    _, _, his = server.request("GET", "/v1/sessions?limit=100", key="key-of-bob")

    assert [found["id"] for found in page["data"] + rest["data"]] == [f"{session}-{name}" for name in "zyx"]
    assert page["has_more"] is True
    assert not [found for found in his["data"] if session in found["id"]]


@pytest.mark.parametrize("limit", ["0", "101", "x", "-1", "\N{SUPERSCRIPT TWO}"])
def test_a_page_has_1_to_100_sessions(server, limit):
    assert server.request("GET", f"/v1/sessions?limit={quote(limit)}")[0] == 400


def test_another_principal_gets_neither_session_nor_slug_nor_response(server, session):
    _, headers, hers = server.respond(mark(1), conversation=session)
    _, _, his = server.respond(mark(2), conversation=session, key="key-of-bob")
    _, _, chat = server.chat(mark(3), headers[HEADER], key="key-of-bob")

    assert seen(his) == ["00000002"]
    assert seen(chat) == ["00000003"]
    assert server.request("GET", f"/v1/responses/{hers['id']}", key="key-of-bob")[0] == 404
    assert server.request("DELETE", f"/v1/responses/{hers['id']}", key="key-of-bob")[0] == 404
    assert server.request("DELETE", f"/v1/sessions/{headers[HEADER]}", key="key-of-alice")[0] == 200


def test_a_client_that_hangs_up_leaves_a_whole_turn(scripted, model, session):
    import http.client  # noqa: PLC0415 - only here
    import json  # noqa: PLC0415 - only here

    held = Hold()
    model.will(held)
    connection = http.client.HTTPConnection(scripted.url.removeprefix("http://"), timeout=5)
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "a"}]})
    connection.request("POST", "/v1/chat/completions", body, {"Authorization": "Bearer key-of-alice", HEADER: session})
    assert held.asked.wait(5)
    connection.close()
    held.released.set()
    scripted.chat("b", session)

    assert model.seen() == [("user", "a"), ("assistant", "Fine."), ("user", "b")]


def test_a_created_conversation_is_used_read_and_deleted(server):
    _, _, made = server.request("POST", "/v1/conversations", {"metadata": {"ticket": "17"}})
    server.respond(mark(1), conversation=made["id"])
    _, _, second = server.respond(mark(2), conversation={"id": made["id"]})

    assert seen(second) == ["00000001", "00000002"]
    assert server.request("GET", f"/v1/conversations/{made['id']}")[2] == made
    assert server.request("DELETE", f"/v1/conversations/{made['id']}")[2]["deleted"] is True
    assert server.request("GET", f"/v1/conversations/{made['id']}")[0] == 404
    assert seen(server.respond(mark(3), conversation=made["id"])[2]) == ["00000003"]


def test_a_created_conversation_goes_with_its_session(server):
    _, _, made = server.request("POST", "/v1/conversations", {})
    _, headers, _ = server.respond(mark(1), conversation=made["id"])
    server.request("DELETE", f"/v1/sessions/{headers[HEADER]}")

    assert server.request("GET", f"/v1/conversations/{made['id']}")[0] == 404


def test_a_created_conversation_without_a_turn_can_be_deleted(server):
    _, _, made = server.request("POST", "/v1/conversations", {})

    assert server.request("DELETE", f"/v1/conversations/{made['id']}")[0] == 200
    assert server.request("DELETE", f"/v1/conversations/{made['id']}")[0] == 404


def test_a_created_conversation_takes_the_session_of_the_header(server, session):
    server.chat(mark(1), session=session)
    _, _, made = server.request("POST", "/v1/conversations", {})
    _, headers, body = server.respond(mark(2), headers={HEADER: session}, conversation=made["id"])

    assert headers[HEADER] == session
    assert seen(body) == ["00000001", "00000002"]


def test_items_of_a_new_conversation_are_refused(server):
    status, _, body = server.request("POST", "/v1/conversations", {"items": [{"role": "user", "content": "x"}]})

    assert (status, body["error"]["param"]) == (400, "items")


def test_another_principals_conversation_is_unknown(server):
    _, _, made = server.request("POST", "/v1/conversations", {})

    assert server.request("GET", f"/v1/conversations/{made['id']}", key="key-of-bob")[0] == 404
    assert server.request("DELETE", f"/v1/conversations/{made['id']}", key="key-of-bob")[0] == 404

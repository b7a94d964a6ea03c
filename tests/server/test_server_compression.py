"""Compression: rotation, in place, by size, and when the summary fails."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from reference_process import HEADER, KEYS, running
from scripted_model import Fail, Hold, Say
from test_server_responses import mark


def summary(server, session, text="c", **body):
    server.control("compress", session_id=session)
    return server.chat(text, session, **body)


def test_the_rotating_answer_tells_the_tip_and_stale_ids_lead_there(scripted, model, session):
    scripted.chat("a", session)
    model.will(Say("b!"), Say("the gist"))
    _, headers, body = summary(scripted, session, "b")
    tip = headers[HEADER]
    _, stale, _ = scripted.chat("c", session)

    assert session != tip == stale[HEADER]
    assert {"id": tip, "rotated_from": session, "degraded": False} == body["session"]
    assert "Summarise" in model.seen(2)[0][1]
    assert ["the gist" in model.seen(3)[0][1], *model.seen(3)[1:]] == [
        True,
        ("user", "b"),
        ("assistant", "b!"),
        ("user", "c"),
    ]


def test_the_parent_is_ended_and_names_its_one_child(scripted, session):
    scripted.chat("a", session)
    tip = summary(scripted, session)[1][HEADER]
    _, _, parent = scripted.request("GET", f"/v1/sessions/{session}".replace(" ", "%20"))
    _, _, child = scripted.request("GET", f"/v1/sessions/{tip}")
    lineage = scripted.control("lineage", session_id=session)

    assert ("compression", tip) == (parent["end_reason"], parent["tip_id"])
    assert (session, None) == (child["parent_id"], child["end_reason"])
    assert [tip] == lineage["children"]


def test_a_stream_tells_the_tip_on_its_finish_chunk(scripted, session):
    scripted.chat("a", session)
    _, headers, events = summary(scripted, session, stream=True)
    finish, done = events.strip().split("\n\n")[-2:]

    assert session == headers[HEADER]
    assert '"finish_reason":"stop"' in finish
    assert f'"rotated_from":"{session}"' in finish
    assert done == "data: [DONE]"


def test_a_stale_id_in_a_stream_that_rotates_again_is_told_what_its_header_named(scripted, session):
    scripted.chat("a", session)
    second = summary(scripted, session, "b")[1][HEADER]
    scripted.control("compress", session_id=session)
    _, headers, events = scripted.chat("c", session, stream=True)

    assert second == headers[HEADER]
    assert f'"rotated_from":"{second}"' in events


def test_turns_that_wait_for_a_rotation_land_in_its_one_child(scripted, model, session):
    scripted.chat("a", session)
    scripted.control("compress", session_id=session)
    held = Hold()
    model.will(held)
    with ThreadPoolExecutor(6) as pool:
        first = pool.submit(scripted.chat, "b", session)
        assert held.asked.wait(5)
        others = [pool.submit(scripted.chat, f"c{number}", session) for number in range(5)]
        held.released.set()
        told = {turn.result()[1][HEADER] for turn in (first, *others)}
    stored = [text for role, text in scripted.stored(told.copy().pop()) if role == "user"]

    assert [*told] == scripted.control("lineage", session_id=session)["children"]
    assert stored[0] == "b"
    assert sorted(stored[1:]) == [f"c{number}" for number in range(5)]


def test_the_child_belongs_to_the_slug_and_the_principal_of_its_parent(server, session):
    _, headers, _ = server.respond("a", conversation=session)
    server.control("compress", session_id=headers[HEADER])
    tip = server.chat("b", headers[HEADER])[1][HEADER]
    _, _, shown = server.request("GET", f"/v1/sessions/{tip}")

    assert session == shown["conversation"]
    assert tip == server.respond("c", conversation=session)[1][HEADER]
    assert server.request("GET", f"/v1/sessions/{tip}", key="key-of-bob")[0] == 404


def test_an_unstored_turn_does_not_rotate_and_leaves_that_to_the_next(server, session):
    _, headers, _ = server.respond("a", conversation=session)
    server.control("compress", session_id=headers[HEADER])
    _, unstored, _ = server.respond("b", conversation=session, store=False)
    _, stored, _ = server.respond("c", conversation=session)

    assert headers[HEADER] == unstored[HEADER] != stored[HEADER]


def test_an_alias_of_a_derived_conversation_is_its_derived_id(model, session):
    opening, answer = {"role": "user", "content": session}, {"role": "assistant", "content": "Fine."}
    with running("--db", ":memory:", "--model", model.url, "--option", "echo=alias", *KEYS) as server:
        root = server.chat("", messages=[opening])[1][HEADER]
        server.control("compress", session_id=root)
        body = [opening]
        told = []
        for text in ("b", "c", "d"):
            body += [answer, {"role": "user", "content": text}]
            told.append(server.chat("", messages=body)[1][HEADER])

        assert told == [root] * 3
        assert len(server.control("lineage", session_id=root)["children"]) == 1


def test_a_failed_summary_leaves_the_session_as_it_was(scripted, model, session):
    scripted.chat("a", session)
    model.will(Say("b!"), Fail())
    status, headers, _ = summary(scripted, session, "b")
    scripted.chat("c", session)

    assert (200, session) == (status, headers[HEADER])
    assert [text for _, text in model.seen()] == ["a", "Fine.", "b", "b!", "c"]


def test_a_derived_conversation_goes_on_in_the_tip_with_the_compressed_history(scripted, model, session):
    opening = {"role": "user", "content": f"a {session}"}
    answer = {"role": "assistant", "content": "Fine."}
    root = scripted.chat("", messages=[opening])[1][HEADER]
    scripted.control("compress", session_id=root)
    model.will(Say("Fine."), Say("the gist"))
    tip = scripted.chat("", messages=[opening, answer, {"role": "user", "content": "b"}])[1][HEADER]
    third = [opening, answer, {"role": "user", "content": "b"}, answer, {"role": "user", "content": "c"}]
    _, headers, _ = scripted.chat("", messages=third)

    assert root != tip == headers[HEADER]
    assert ["the gist" in model.seen()[0][1], *model.seen()[1:]] == [
        True,
        ("user", "b"),
        ("assistant", "Fine."),
        ("user", "c"),
    ]


def test_a_fork_is_not_followed(scripted, session):
    scripted.chat("a", session)
    fork = scripted.control("fork", session_id=session)["session_id"]
    _, headers, _ = scripted.chat("b", session)

    assert session == headers[HEADER]
    assert scripted.stored(fork) == [("user", "a"), ("assistant", "Fine.")]


@pytest.mark.parametrize("following", ["itself", "nobody"])
def test_a_damaged_lineage_still_ends_in_an_answer(scripted, session, following):
    scripted.chat("a", session)
    scripted.control("link", session_id=session, next=session if following == "itself" else "nobody")

    assert scripted.chat("b", session)[0] == 200


def test_in_place_compression_by_size_keeps_the_id(model, session):
    options = ("--option", "compaction=in-place", "--context", "200", "--db", ":memory:", "--model", model.url)
    with running(*options, *KEYS) as server:
        server.chat("x" * 1000, session)
        model.will(Say("b!"), Say("the gist"))
        _, headers, _ = server.chat("b", session)
        server.chat("c", session)

        assert session == headers[HEADER]
        assert ["the gist" in model.seen()[0][1], *model.seen()[1:]] == [
            True,
            ("user", "b"),
            ("assistant", "b!"),
            ("user", "c"),
        ]


def test_a_derived_conversation_that_is_too_long_at_once_bears_one_child(model):
    body = [
        {"role": "user", "content": "x" * 1000},
        {"role": "assistant", "content": "y"},
        {"role": "user", "content": "b"},
    ]
    with running("--context", "200", "--db", ":memory:", "--model", model.url, *KEYS) as server:
        tip = server.chat("", messages=body)[1][HEADER]
        body += [{"role": "assistant", "content": "Fine."}, {"role": "user", "content": "c"}]
        again = server.chat("", messages=body)[1][HEADER]

        assert tip == again
        assert tip.startswith("sess_")


def test_a_slug_follows_the_tip_after_its_response_is_gone(server, session):
    _, headers, body = server.respond(mark(1), conversation=session)
    server.control("compress", session_id=headers[HEADER])
    _, rotated, second = server.respond(mark(2), conversation=session)
    for response in (body, second):
        server.control("evict", response_id=response["id"])
    _, third, _ = server.respond(mark(3), conversation=session)

    assert headers[HEADER] != rotated[HEADER] == third[HEADER]

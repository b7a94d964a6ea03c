"""Execution environments: shared or one for each chain, after a rotation and a restart."""

import pytest
from reference_process import HEADER, KEYS, running
from scripted_model import CallTool, Say

from continuity_server.rules import Rules
from continuity_server.settings import Options, parse

MISSING = "error: there is no note of that name"


@pytest.fixture(params=["shared", "per-session"])
def environment(request):
    return request.param


@pytest.fixture
def started(environment, model, tmp_path):
    options = ("--option", f"environment={environment}", "--db", str(tmp_path / "c.db"), "--model", model.url)
    with running(*options, *KEYS) as server:
        yield server


def write(model, turn, *arguments, **body):
    model.will(CallTool("workspace", {"action": "write", "name": "n", "text": "note"}), Say("written"))
    return turn("write", *arguments, **body)


def read(model, turn, *arguments, **body):
    """What the tool gave the model in a turn."""
    model.will(CallTool("workspace", {"action": "read", "name": "n"}), Say("read"))
    turn("read", *arguments, **body)
    return next(message["content"] for message in model.calls[-1]["messages"][::-1] if message["role"] == "tool")


def test_a_conversation_finds_its_note_after_a_rotation_and_a_restart(started, model, session):
    write(model, started.chat, session)
    started.control("compress", session_id=session)
    tip = started.chat("more", session)[1][HEADER]
    rotated = read(model, started.chat, tip)
    started.stop()
    started.start()

    assert session != tip
    assert [rotated, read(model, started.chat, session)] == ["note", "note"]


def test_a_slug_and_a_header_of_one_session_share_it(started, model, session):
    _, headers, _ = write(model, started.respond, conversation=session)

    assert read(model, started.chat, headers[HEADER]) == "note"


def test_another_conversation_finds_it_only_where_it_is_shared(started, model, session, environment):
    write(model, started.chat, session)
    found = [
        read(model, started.chat, f"{session}-other"),
        read(model, started.chat, session, key="key-of-bob"),
        read(model, started.respond, conversation=session),
    ]

    assert found == ["note" if environment == "shared" else MISSING] * 3


def test_the_shared_environment_is_called_default(started, model, session, environment, tmp_path):
    write(model, started.chat, session)
    folders = [folder.name for folder in (tmp_path / "workspace-c.db").iterdir()]

    assert len(folders) == 1
    assert (folders == ["default"]) is (environment == "shared")


def test_a_deleted_session_takes_its_notes_with_it_but_no_shared_ones(started, model, session, environment):
    write(model, started.chat, session)
    write(model, started.chat, f"{session}-other")
    assert started.request("DELETE", f"/v1/sessions/{session}")[0] == 200

    assert read(model, started.chat, session) == ("note" if environment == "shared" else MISSING)
    assert read(model, started.chat, f"{session}-other") == "note"


def test_a_deleted_conversation_takes_its_notes_with_it(started, model, environment, tmp_path):
    conversation = started.request("POST", "/v1/conversations", {})[2]["id"]
    write(model, started.respond, conversation=conversation)
    assert started.request("DELETE", f"/v1/conversations/{conversation}")[0] == 200

    assert len(list((tmp_path / "workspace-c.db").iterdir())) == (environment == "shared")


def test_a_deletion_whose_notes_cannot_be_deleted_is_refused_and_can_be_tried_again(
    started, model, tmp_path, environment
):
    name = Rules(Options(environment="per-session")).environment("alice", "stuck")
    blocked = tmp_path / "workspace-c.db" / name
    blocked.parent.mkdir(exist_ok=True)
    blocked.write_text("no folder")
    model.will(Say("blue"))
    started.chat("red", "stuck")
    first = started.request("DELETE", "/v1/sessions/stuck")[0]
    blocked.unlink()

    assert first == (200 if environment == "shared" else 503)
    assert started.request("DELETE", "/v1/sessions/stuck")[0] == (404 if environment == "shared" else 200)


def test_principals_share_an_environment_only_if_the_operator_says_so():
    two = ["--key", "alice=a", "--key", "bob=b"]

    assert parse([]).options.environment == "shared"
    assert parse(["--key", "alice=a", "--key", "alice=b"]).options.environment == "shared"
    assert parse(two).options.environment == "per-session"
    assert parse([*two, "--option", "environment=shared"]).options.environment == "shared"

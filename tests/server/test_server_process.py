"""The process: durability, options that need a start of their own, signals, and every defect."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import aiohttp
import pytest
from reference_process import HEADER, KEYS, running, said
from scripted_model import Fail, Hold

from continuity_server.defects import DEFECTS
from continuity_server.server import parts_with, serving
from continuity_server.settings import Settings


def test_an_answered_turn_survives_kill_and_stop(tmp_path, session):
    with running("--db", str(tmp_path / "c.db"), *KEYS) as server:
        server.chat("a", session)
        _, headers, _ = server.respond("b", conversation=session)
        server.kill()
        server.start()
        stored = server.stored(session)
        _, after_kill, _ = server.respond("c", conversation=session)
        code = server.stop()
        server.start()
        _, after_stop, body = server.respond("d", conversation=session)

        assert stored[0] == ("user", "a")
        assert headers[HEADER] == after_kill[HEADER] == after_stop[HEADER]
        assert code == 0
        assert "key-of-alice" not in server.log
        assert said(body).startswith("Noted.")


@pytest.mark.parametrize("replicas", [1, 2])
def test_without_a_database_nothing_is_left(tmp_path, replicas):
    """It keeps its sessions in a temporary folder, which is deleted at its end, and warns of a database that it would have used before."""
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()
    (here / "continuity.db").write_bytes(b"")
    command = [sys.executable, "-m", "continuity_server", "--port=0", f"--replicas={replicas}"]
    env = {name: value for name, value in os.environ.items() if name != "CONTINUITY_DB"} | {"TMPDIR": str(temporary)}
    with subprocess.Popen(
        command, cwd=here, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        for _ in range(replicas):
            server.stdout.readline()
        stored = [*temporary.rglob("continuity.db")]
        server.terminate()
        log = server.stderr.read()

    assert server.returncode == 0
    assert len(stored) == 1
    assert f"sessions are stored in {stored[0]}, until the server ends; --db FILE keeps them" in log
    assert "continuity.db in this folder is not used (--db continuity.db)" in log
    assert [*temporary.iterdir()] == []
    assert [file.name for file in here.iterdir()] == ["continuity.db"]


def test_without_keys_on_loopback_it_is_for_one_person(session):
    with running("--db", ":memory:") as server:
        _, _, body = server.request("GET", "/v1/capabilities", key=None)

        assert body["continuity"]["single_user"] is True
        assert server.chat("a", session, key=None)[1][HEADER] == session


# A name of loopback that the server does not know for one, so that nothing is opened to anybody here.
@pytest.mark.parametrize("reached", [("--host", "127.1"), ("--public",)], ids=["at its address", "through a proxy"])
def test_without_keys_in_the_open_nothing_is_continued(session, reached):
    with running("--db", ":memory:", *reached) as server:
        statuses = [
            server.chat("a", session, key=None)[0],
            server.respond("a", conversation=session, key=None)[0],
            server.respond("a", previous_response_id="x", key=None)[0],
        ]

        assert statuses == [403, 403, 403]
        assert server.chat("a", key=None)[0] == 200


def test_turns_of_one_session_run_one_after_the_other(scripted, model, session):
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda number: scripted.chat(f"t{number}", session)[0], range(8)))

    assert statuses == [200] * 8
    assert [2 * turn + 1 for turn in range(8)] == [len(call["messages"]) for call in model.calls]


def test_many_first_turns_of_a_slug_are_one_session(scripted, session):
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: scripted.respond("a", conversation=session)[1][HEADER], range(8)))

    assert len(set(told)) == 1


def test_a_slow_session_holds_up_no_other(scripted, model, session):
    held = Hold()
    model.will(held)
    slow = threading.Thread(target=scripted.chat, args=("a", session))
    slow.start()
    assert held.asked.wait(5)

    assert scripted.chat("b", f"{session}-quick")[0] == 200

    held.released.set()
    slow.join()


def test_rejecting_alias_refusing_and_separate(model, session):
    """The other values of turns, echo, degraded and environment."""
    chosen = ("turns=reject", "echo=alias", "degraded=refuse", "environment=none", "derivation=content-v2")
    options = [word for option in chosen for word in ("--option", option)]
    with running("--db", ":memory:", *KEYS, "--model", model.url, *options) as server:
        held = Hold()
        model.will(held)
        slow = threading.Thread(target=server.chat, args=("a", session))
        slow.start()
        assert held.asked.wait(5)
        busy, headers, _ = server.chat("b", session)
        held.released.set()
        slow.join()
        with server.broken("read"):
            refused = server.chat("c", session)[0]
        server.control("compress", session_id=session)
        _, alias, body = server.chat("d", session)
        _, later, _ = server.chat("e", session)

        assert (busy, headers["Retry-After"], refused) == (409, "1", 503)
        assert session == alias[HEADER] == later[HEADER] == body["session"]["id"]
        assert "What was said earlier" in model.seen()[0][1]
        assert "tools" not in model.calls[0]
        assert server.chat("x")[1][HEADER].startswith("api2-")


@pytest.mark.parametrize("why", ["the model failed", "the history is unavailable", "another turn was running"])
def test_an_unanswered_turn_leaves_nothing(model, session, why):
    options = ("--option", "turns=reject", "--option", "degraded=refuse")
    with running("--db", ":memory:", *KEYS, "--model", model.url, *options) as server:
        server.chat("a", session)
        status = {
            "the model failed": _turn_whose_model_fails,
            "the history is unavailable": _turn_without_history,
            "another turn was running": _turn_beside_another,
        }[why](server, model, session)

        assert status in {409, 502, 503}
        assert "b" not in [text for _, text in server.stored(session)]


def _turn_whose_model_fails(server, model, session):
    model.will(Fail())
    return server.chat("b", session)[0]


def _turn_without_history(server, _, session):
    with server.broken("read"):
        return server.chat("b", session)[0]


def _turn_beside_another(server, model, session):
    held = Hold()
    model.will(held)
    slow = threading.Thread(target=server.chat, args=("c", session))
    slow.start()
    assert held.asked.wait(5)
    status = server.chat("b", session)[0]
    held.released.set()
    slow.join()
    return status


def test_stop_waits_for_a_running_turn(model, session, tmp_path):
    held = Hold()
    model.will(held)
    with running("--db", str(tmp_path / "c.db"), "--model", model.url) as server, ThreadPoolExecutor() as pool:
        turn = pool.submit(server.chat, "a", session)
        assert held.asked.wait(5)
        stopping = pool.submit(server.stop)
        held.released.set()

        assert turn.result()[0] == 200
        assert stopping.result() == 0


def test_an_unknown_defect_is_refused_with_a_sentence():
    done = subprocess.run(
        [sys.executable, "-m", "continuity_server", "--defect", "x"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "There is no defect 'x'" in done.stderr


def test_the_defects_are_listed_as_json():
    done = subprocess.run([sys.executable, "-m", "continuity_server", "--defects"], capture_output=True, check=True)

    assert list(DEFECTS) == [entry["name"] for entry in json.loads(done.stdout)]


async def _turns(parts):
    """A server with these parts answers a few turns of every kind; the statuses."""
    messages = {"model": "m", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}]}
    turns = [
        ("chat/completions", messages),
        ("chat/completions", {**messages, "stream": True}),
        ("responses", {"model": "m", "input": "a"}),
    ]
    async with serving(Settings(db=":memory:", controls="t"), parts) as url, aiohttp.ClientSession() as client:
        statuses = []
        for path, body in turns:
            async with client.post(f"{url}/v1/{path}", json=body) as answer:
                await answer.read()
                statuses.append(answer.status)
        return statuses


@pytest.mark.parametrize("defect", [None, *DEFECTS])
def test_a_server_with_a_defect_starts_and_answers(defect, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some leave files where they are started

    answered = asyncio.run(_turns(parts_with([defect] if defect else [])))

    # One defect is that what is claimed is not there.
    assert answered == [200, 200, 404 if defect == "claims-responses" else 200]

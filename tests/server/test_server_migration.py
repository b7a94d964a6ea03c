"""Databases from before: upgraded in place, whole, once, and still open to their old writers."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import old_database
import pytest
from old_database import data
from reference_process import HEADER, KEYS, Server, running, said
from test_server_responses import mark, seen

from continuity_spec.openapi.answers import AnswerValidator

RED, BLUE = "0000000a", "0000000b"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "c.db"


def started(path, *arguments):
    return running("--db", str(path), *KEYS, *arguments)


def test_every_row_is_kept_as_it_was(path):
    responses = {f"resp_{number}": data(f"s{number}", f"text {number}") for number in range(300)}
    slugs = {f"slug {number}": f"resp_{number}" for number in range(310)}
    old_database.make(path, responses, slugs)
    before = old_database.rows(path)
    with started(path) as server:
        server.stop()

    assert before == old_database.rows(path)


def test_an_old_slug_goes_on_in_its_session_with_its_history(path):
    old_database.make(path, {"resp_1": data("s1", f"[u:{RED}]", f"[u:{BLUE}]")}, {"work": "resp_1"})
    with started(path) as server:
        _, headers, body = server.respond(mark(1), conversation="work")
        _, again, second = server.respond(mark(2), conversation="work")

        assert headers[HEADER] == again[HEADER] == "s1"
        assert seen(body) == [RED, BLUE, "00000001"]
        assert seen(second) == [RED, BLUE, "00000001", "00000002"]


def test_a_header_names_an_old_session_too(path):
    old_database.make(path, {"resp_1": data("s1", f"[u:{RED}]")}, {"work": "resp_1"})
    with started(path) as server:
        _, _, chat = server.chat(mark(1), "s1")
        _, _, body = server.respond(mark(2), conversation="work")

        assert seen(chat) == [RED, "00000001"]
        assert seen(body) == [RED, "00000001", "00000002"]


def test_an_old_slug_whose_response_is_gone_is_404_for_good(path):
    old_database.make(path, {}, {"lost": "resp_gone"})
    with started(path) as server:
        statuses = [server.respond("a", conversation="lost") for _ in range(2)]
        server.stop()
        server.start()
        statuses.append(server.respond("a", conversation="lost", stream=True))

        assert [status for status, _, _ in statuses] == [404] * 3
        assert {body["error"]["code"] for _, _, body in statuses} == {"previous_response_not_found"}
        assert server.request("GET", "/v1/sessions")[2]["data"] == []


UNREADABLE = {"no JSON": "no JSON", "a list": "[]", "nothing": "", "a text": '"text"', "too deep": "[" * 100_000}


@pytest.mark.parametrize("broken", UNREADABLE.values(), ids=UNREADABLE)
def test_a_row_that_cannot_be_read_stays_and_stops_nobody(path, broken):
    old_database.make(path, {"resp_1": broken, "resp_2": data("s2", f"[u:{RED}]")}, {"a": "resp_1", "b": "resp_2"})
    with started(path) as server:
        assert server.respond("x", conversation="a")[0] == 404
        assert server.request("GET", "/v1/responses/resp_1")[0] == 404
        assert seen(server.respond(mark(1), conversation="b")[2]) == [RED, "00000001"]
    assert old_database.rows(path)[1]["resp_1"] == broken


@pytest.mark.parametrize("session", [None, 5, "", " s", "a\nb", "x" * 257])
def test_a_session_that_no_client_could_name_gets_an_id_of_ours(path, session):
    old_database.make(path, {"resp_1": data(session, f"[u:{RED}]")}, {"work": "resp_1"})
    with started(path) as server:
        _, headers, body = server.respond(mark(1), conversation="work")

        assert headers[HEADER].startswith("sess_")
        assert seen(body) == [RED, "00000001"]


def test_what_is_no_message_in_an_old_history_is_left_out(path):
    said = [{"role": "user", "content": f"[u:{RED}]"}, "text", {"role": "wizard"}, {"role": "user"}, None]
    old_database.make(path, {"resp_1": {"session_id": "s1", "conversation_history": said}}, {"work": "resp_1"})
    with started(path) as server:
        assert seen(server.respond(mark(1), conversation="work")[2]) == [RED, "00000001"]


OLD_RESPONSES = {
    "nothing": {},
    "a bare message": {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}]},
    "a text as content": {"output": [{"type": "message", "content": "Hi"}], "usage": None, "model": "old"},
    "calls": {
        "output": [
            {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "1"},
            {"type": "function_call_output", "call_id": "1", "output": "x"},
            "no item",
        ]
    },
}  # fmt: skip


@pytest.mark.parametrize("response", OLD_RESPONSES.values(), ids=OLD_RESPONSES)
def test_an_old_response_is_read_as_a_valid_one(path, response):
    old_database.make(path, {"resp_1": data("s1", "a", response=response)}, {})
    with started(path) as server:
        status, headers, body = server.request("GET", "/v1/responses/resp_1")

        assert (status, body["id"]) == (200, "resp_1")
        fields = {name.lower(): [value] for name, value in headers.items()}
        kind = headers["Content-Type"]
        assert AnswerValidator(HEADER).problems("GET", "/v1/responses/resp_1", 200, kind, fields, body) == []


def test_the_newest_old_response_continues_its_session_and_an_older_one_branches(path):
    responses = {"resp_1": data("s1", f"[u:{RED}]"), "resp_2": data("s1", f"[u:{RED}]", f"[u:{BLUE}]")}
    old_database.make(path, responses, {"work": "resp_2"})
    with started(path) as server:
        _, apart, branch = server.respond(mark(1), previous_response_id="resp_1")
        _, line, newest = server.respond(mark(2), previous_response_id="resp_2")
        _, slug, last = server.respond(mark(3), conversation="work")

        assert seen(branch) == [RED, "00000001"]
        assert seen(newest) == [RED, BLUE, "00000002"]
        assert seen(last) == [RED, BLUE, "00000002", "00000003"]
        assert apart[HEADER] != line[HEADER] == slug[HEADER] == "s1"


def test_two_old_lines_of_one_session_are_both_there(path):
    """The slug's is the session's; the other one can be branched from."""
    responses = {"resp_1": data("s1", f"[u:{RED}]", "x", "y"), "resp_2": data("s1", f"[u:{BLUE}]")}
    old_database.make(path, responses, {"work": "resp_2"})
    with started(path) as server:
        _, _, branch = server.respond(mark(1), previous_response_id="resp_1")
        _, headers, slug = server.respond(mark(2), conversation="work")

        assert seen(branch) == [RED, "00000001"]
        assert seen(slug) == [BLUE, "00000002"]
        assert headers[HEADER] == "s1"


def test_old_rows_belong_to_the_first_principal_whatever_it_is_called(path):
    old_database.make(path, {"resp_1": data("s1", f"[u:{RED}]")}, {"work": "resp_1"})
    with running("--db", str(path), "--key", "o'hara; --=key-of-alice", "--key", "bob=key-of-bob") as server:
        _, _, his = server.respond(mark(1), conversation="work", key="key-of-bob")
        statuses = [server.request("GET", "/v1/responses/resp_1", key=f"key-of-{name}")[0] for name in ("bob", "alice")]
        old_database.write(path, {"resp_2": data("s2")}, {"play": "resp_2"})

        assert seen(his) == ["00000001"]
        assert statuses == [404, 200]
        assert seen(server.respond(mark(2), conversation="work")[2]) == [RED, "00000002"]
        assert server.respond(mark(3), conversation="play")[1][HEADER] == "s2"


def test_after_one_turn_an_old_slug_needs_no_response(path):
    old_database.make(path, {"resp_1": data("s1", f"[u:{RED}]")}, {"work": "resp_1"})
    with started(path) as server:
        _, _, body = server.respond(mark(1), conversation="work")
        for response in ("resp_1", body["id"]):
            server.control("evict", response_id=response)
        server.stop()
        server.start()
        _, headers, again = server.respond(mark(2), conversation="work")

        assert headers[HEADER] == "s1"
        assert seen(again) == [RED, "00000001", "00000002"]


def test_an_old_slug_keeps_its_session_when_new_responses_push_out_its_own(path):
    old_database.make(path, {"resp_1": data("s1", f"[u:{RED}]")}, {"work": "resp_1"})
    with started(path, "--max-responses", "2") as server:
        for _ in range(3):
            server.respond("more")
        gone, _, _ = server.request("GET", "/v1/responses/resp_1")
        _, headers, body = server.respond(mark(1), conversation="work")

        assert gone == 404
        assert headers[HEADER] == "s1"
        assert seen(body) == [RED, "00000001"]


def test_a_second_start_changes_nothing(path):
    responses = {f"resp_{number}": data(f"s{number}", f"text {number}") for number in range(20)}
    old_database.make(path, responses, {**{f"slug {number}": f"resp_{number}" for number in range(20)}, "x": "gone"})
    with started(path) as server:
        server.respond("a", conversation="slug 1")
        server.respond("b", conversation="new")
        server.stop()
        before = old_database.everything(path)
        for _ in range(2):
            server.start()
            server.stop()

        assert before == old_database.everything(path)


def test_a_writer_of_the_old_shape_is_heard_at_once(path):
    with started(path) as server:
        _, first, _ = server.respond(mark(1), conversation="work")
        row = data("s9", f"[u:{RED}]")
        old_database.write(path, {"resp_9": row}, {"work": "resp_9", "late": "resp_9", "lost": "resp_gone"})
        _, moved, body = server.respond(mark(2), conversation="work")
        _, late, _ = server.respond(mark(3), conversation="late")

        assert first[HEADER] != moved[HEADER] == late[HEADER] == "s9"
        assert seen(body) == [RED, "00000002"]
        assert server.request("GET", "/v1/responses/resp_9")[0] == 200
        assert server.respond("x", conversation="lost")[0] == 404


def test_what_an_old_process_added_to_a_known_session_is_seen(path):
    with started(path) as server:
        _, headers, body = server.respond(mark(1), conversation="work")
        session = headers[HEADER]
        stored = [{"role": role, "content": text} for role, text in server.stored(session)]
        longer = {"session_id": session, "conversation_history": [*stored, *old_database.history(f"[u:{RED}]")]}
        old_database.write(path, {"resp_9": longer}, {"work": "resp_9"})
        _, again, second = server.respond(mark(2), conversation="work")
        _, _, branch = server.respond(mark(3), previous_response_id=body["id"])

        assert session == again[HEADER]
        assert seen(second) == ["00000001", RED, "00000002"]
        assert seen(branch) == ["00000001", "00000003"]


def test_what_an_old_process_added_to_a_session_is_deleted_with_it(path):
    with started(path) as server:
        _, headers, _ = server.respond(mark(1), conversation="work")
        old_database.write(path, {"resp_9": data(headers[HEADER], f"[u:{RED}]")}, {})
        server.request("DELETE", f"/v1/sessions/{headers[HEADER]}")

        assert server.request("GET", "/v1/responses/resp_9")[0] == 404
        assert seen(server.respond(mark(2), conversation="work")[2]) == ["00000002"]


def test_a_deleted_old_response_leaves_its_slug(path):
    with started(path) as server:
        old_database.write(path, {"resp_1": data("s1", f"[u:{RED}]")}, {"work": "resp_1"})
        deleted, _, _ = server.request("DELETE", "/v1/responses/resp_1")
        _, headers, body = server.respond(mark(1), conversation="work")

        assert deleted == 200
        assert headers[HEADER] == "s1"
        assert seen(body) == [RED, "00000001"]


def test_a_deleted_session_takes_its_old_slug_along(path):
    old_database.make(path, {"resp_1": data("s1", f"[u:{RED}]")}, {"work": "resp_1"})
    with started(path) as server:
        server.request("DELETE", "/v1/sessions/s1")
        _, headers, body = server.respond(mark(1), conversation="work")

        assert headers[HEADER] != "s1"
        assert seen(body) == ["00000001"]


@pytest.mark.parametrize("table", ["conversations", "responses"])
def test_one_old_table_alone_is_upgraded_too(path, table):
    old_database.make(path, {"resp_1": data("s1", "a")}, {"work": "resp_1"})
    with sqlite3.connect(path) as database:
        database.execute(f"DROP TABLE {table}")
    database.close()
    with started(path) as server:
        expected = 404 if table == "responses" else 200

        assert server.respond("a", conversation="work")[0] == expected


def test_processes_that_start_at_once_all_come_up_and_the_rows_are_whole(path):
    responses = {f"resp_{number}": data(f"s{number}", f"[u:{number:08x}]") for number in range(400)}
    old_database.make(path, responses, {f"slug {number}": f"resp_{number}" for number in range(400)})
    before = old_database.rows(path)
    with ThreadPoolExecutor(3) as pool:
        servers = list(pool.map(lambda _: Server("--db", str(path), *KEYS), range(3)))
    try:
        told = [server.respond(mark(7000), conversation="slug 5") for server in servers]

        assert before[0] == {**old_database.rows(path)[0], "slug 5": "resp_5"}
        assert before[1].items() <= old_database.rows(path)[1].items()
        assert {headers[HEADER] for _, headers, _ in told} == {"s5"}
        assert [len(seen(body)) for _, _, body in told] == [2, 3, 4]
    finally:
        for server in servers:
            server.stop()


def test_processes_that_start_at_once_on_no_database_all_come_up(path):
    with ThreadPoolExecutor(3) as pool:
        servers = list(pool.map(lambda _: Server("--db", str(path), *KEYS), range(3)))
    try:
        told = {server.respond("a", conversation="work")[1][HEADER] for server in servers}

        assert len(told) == 1
    finally:
        for server in servers:
            server.stop()


def test_a_file_that_is_no_database_ends_in_a_sentence(path):
    path.write_text("no database, but long enough to be looked at" * 50)
    command = [sys.executable, "-m", "continuity_server", "--port", "0", "--db", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)

    assert done.returncode == 1
    assert done.stderr.startswith("The database cannot be used")
    assert "Traceback" not in done.stderr


def test_an_answer_to_an_old_slug_is_a_plain_one(path):
    old_database.make(path, {"resp_1": data("s1", "a")}, {"work": "resp_1"})
    with started(path) as server:
        assert said(server.respond("b", conversation="work")[2]).startswith("Noted.")


def test_an_old_session_that_is_deleted_before_its_first_turn_takes_its_slug_and_response_along(path):
    responses = {"resp_1": data("s1", f"[u:{RED}]"), "resp_2": data("s2", f"[u:{BLUE}]")}
    old_database.make(path, responses, {"lost": "resp_0", "work": "resp_1", "kept": "resp_2"})
    with started(path) as server:
        assert server.request("DELETE", "/v1/sessions/s1")[0] == 200
        assert server.respond("a", conversation="lost")[0] == 404
        assert server.respond("a", previous_response_id="resp_1")[0] == 404
        assert seen(server.respond(mark(1), conversation="work")[2]) == ["00000001"]
        assert seen(server.respond(mark(2), previous_response_id="resp_2")[2]) == [BLUE, "00000002"]

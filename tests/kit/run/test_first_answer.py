"""The first answer of a target: one that hangs is named soon, and one that is only slow is waited for."""

import asyncio
import time

import pytest

from continuity_conformance.core.errors import UnreachableError
from continuity_conformance.http.messages import TIMED_OUT, Answer
from continuity_conformance.run import first_answer

NEVER = 60.0
URL = "http://127.0.0.1:9"


class Server:
    """Answers each path after so many seconds; `turn_seconds` is the time-out of the client."""

    def __init__(self, turn_seconds: float = NEVER, **seconds: float) -> None:
        self.turn_seconds = turn_seconds
        self.seconds = seconds
        self.asked: list[str] = []

    async def get(self, path: str) -> Answer:
        self.asked.append(path)
        seconds = self.seconds.get(path.rpartition("/")[2], NEVER)
        await asyncio.sleep(min(seconds, self.turn_seconds))
        return Answer(200, body=path) if seconds <= self.turn_seconds else Answer(error=f"{TIMED_OUT} in 1 s")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_answer, "QUICK_SECONDS", 0.1)


def asked(server: Server) -> Answer:
    return asyncio.run(first_answer.first_answer(server.get, URL))


def test_a_server_that_answers_is_asked_once():
    server = Server(capabilities=0)

    assert asked(server).status == 200
    assert server.asked == ["/v1/capabilities"]


@pytest.mark.parametrize("turn_seconds", [NEVER, 0.05])
def test_a_server_that_answers_nothing_is_named_before_a_turn_could_time_out(turn_seconds: float):
    began = time.monotonic()
    with pytest.raises(UnreachableError) as error:
        asked(Server(turn_seconds))

    assert str(error.value).startswith(f"{URL}: The server accepts the connection, but there is no complete answer")
    assert "GET /v1/models" in str(error.value)
    assert "--wait" in str(error.value)
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("path", ["models", "health"])
def test_a_server_whose_capabilities_are_slow_is_waited_for(path: str):
    answer = asked(Server(capabilities=0.3, **{path: 0}))

    assert answer.body == "/v1/capabilities"


def test_capabilities_that_come_late_are_an_answer_too():
    assert asked(Server(capabilities=0.15)).body == "/v1/capabilities"


def test_a_server_without_capabilities_in_time_is_examined_if_it_answers_something():
    assert asked(Server(turn_seconds=0.2, health=0)).timed_out


def test_a_lost_connection_is_no_silence():
    async def lost(path: str) -> Answer:
        await asyncio.sleep(0.15 if path == first_answer.CAPABILITIES else 0)
        return Answer(error="connection lost: reset")

    assert asyncio.run(first_answer.first_answer(lost, URL)).error == "connection lost: reset"

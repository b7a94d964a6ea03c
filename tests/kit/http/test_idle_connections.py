"""Idle connections: servers close them, and a request that meets such a close is not the target's failure."""

import asyncio

import pytest
from short_idle import short_idle_server

from continuity_conformance.http.client import IDLE_SECONDS, Transport
from continuity_conformance.http.messages import Answer, Request, parse_json


async def _sent(url: str, pauses: list[float], method: str = "POST") -> list[Answer]:
    async with Transport(5.0) as transport:
        answers = [await transport.send(Request(method, url))]
        for pause in pauses:
            await asyncio.sleep(pause)
            answers.append(await transport.send(Request(method, url)))
        return answers


def test_requests_in_a_row_share_a_connection():
    with short_idle_server() as (url, counts):
        asyncio.run(_sent(url, [0.0, 0.0]))

    assert counts == [3]


def test_a_connection_that_was_idle_is_not_used_again():
    with short_idle_server() as (url, counts):
        asyncio.run(_sent(url, [IDLE_SECONDS * 2]))

    assert counts == [1, 1]


def test_no_request_meets_the_end_of_an_idle_connection():
    with short_idle_server(idle=1.0) as (url, _):
        answers = asyncio.run(_sent(url, [0.1, 0.3, 0.6, 0.9, 0.95, 0.99, 1.0, 1.01]))

    assert {answer.status for answer in answers} == {200}


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_reused_connection_that_is_lost_without_a_byte_is_stale(method):
    """A GET or DELETE is not repeated in silence either: the second DELETE of a pair would be 404."""
    with short_idle_server(answers=1) as (url, counts):
        answers = asyncio.run(_sent(url, [0.0], method))

    assert [answer.stale for answer in answers] == [False, True]
    assert answers[1].error.startswith("connection lost")
    assert counts == [2]


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_new_connection_that_is_lost_is_not_stale(method):
    with short_idle_server(answers=0) as (url, counts):
        answers = asyncio.run(_sent(url, [], method))

    assert not answers[0].stale
    assert answers[0].error.startswith("connection lost")
    assert counts == [1]


def test_an_answer_that_had_begun_is_not_stale():
    with short_idle_server(answers=1, last=b"HTTP/1.1 200 OK\r\nContent-Type: appl") as (url, _):
        answers = asyncio.run(_sent(url, [0.0]))

    assert not answers[1].stale


def test_a_number_of_many_digits_is_an_answer():
    assert parse_json("9" * 5000) is None


def test_a_connection_whose_answer_was_read_late_is_not_used_again():
    """The target's clock began when it sent the answer."""
    with short_idle_server(delay=IDLE_SECONDS * 2) as (url, counts):
        asyncio.run(_sent(url, [0.0]))

    assert counts == [1, 1]

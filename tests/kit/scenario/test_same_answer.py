"""`answer`: whether a client got the same answer again."""

import asyncio
from types import SimpleNamespace

import pytest

from continuity_conformance.core.failure import Unmet
from continuity_conformance.scenario.expect.client import answer
from continuity_conformance.scenario.variables import Variables


def got(verb: str, *answers: tuple[str, str]) -> None:
    """Receive answers, each an id and a text, which must all be the same one."""
    record = SimpleNamespace(variables=Variables({}, {}))
    for identity, text in answers:
        reading = SimpleNamespace(id=identity, text=text)
        asyncio.run(answer(record, SimpleNamespace(verb=verb, reading=reading, principal="alice"), "$first"))


def test_a_chat_completion_that_is_replayed_may_have_a_new_id():
    got("chat", ("chatcmpl-1", "Noted. [a:7f3a9b21#17]"), ("chatcmpl-2", "Noted. [a:7f3a9b21#17]"))


@pytest.mark.parametrize(
    ("verb", "first", "second"),
    [
        ("chat", ("chatcmpl-1", "Noted. [a:7f3a9b21#17]"), ("chatcmpl-1", "Noted. [a:7f3a9b21#18]")),
        ("chat", ("chatcmpl-1", "Noted."), ("chatcmpl-2", "Noted.")),
        ("respond", ("resp_1", "Noted. [a:7f3a9b21#17]"), ("resp_2", "Noted. [a:7f3a9b21#17]")),
    ],
    ids=["another call of the model", "a text that may be said twice", "a response, whose id continues it"],
)
def test_another_answer_is_found(verb: str, first: tuple[str, str], second: tuple[str, str]):
    with pytest.raises(Unmet):
        got(verb, first, second)

"""`like`: two answers are the same if they differ only in ids, texts, times and numbers."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from continuity_conformance.core.failure import Unmet
from continuity_conformance.http.messages import Answer, Request
from continuity_conformance.scenario.expect.client import like
from continuity_conformance.scenario.variables import Variables


def exchange(body, status=200):
    answer = Answer(status, (), json.dumps(body), body)
    return SimpleNamespace(answer=answer, request=Request("POST", "http://x/v1/responses"), principal="bob")


def compared(one, other):
    record = SimpleNamespace(variables=Variables({}, {}))
    record.variables.capture("$known", "session", "bob", "Quiet-Harbour")
    asyncio.run(like(record, one, "$shape"))
    asyncio.run(like(record, other, "$shape"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"id": "resp_0123456789abcdef"}, {"id": "resp_fedcba9876543210"}),
        ({"id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, {"id": "01BX5ZZKBKACTAV9WEVGEMMVS0"}),
        ({"conversation_id": "zzTop"}, {"conversation_id": "QuietPlace"}),
        ({"completed_at": 1}, {"completed_at": 2}),
        ({"message": "no session V1StGXR8_Z5jdHi6"}, {"message": "no session Uakgb_J5m9g-0JDM"}),
        ({"message": "no session Quiet-Harbour"}, {"message": "no session Quiet-Harbour"}),
    ],
)
def test_ids_of_any_alphabet_do_not_count(one, other):
    compared(exchange(one), exchange(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (exchange({"error": {"code": "not_found"}}), exchange({"error": {"code": "not_yours"}})),
        (exchange({}, 404), exchange({}, 403)),
        (exchange({"deleted": True}), exchange({"deleted": False})),
    ],
)
def test_every_other_difference_counts(one, other):
    with pytest.raises(Unmet, match="the same answer as before"):
        compared(one, other)

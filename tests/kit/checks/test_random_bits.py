"""How many random bits ids have."""

import itertools
import secrets
import time
import uuid

import pytest

from continuity_conformance.checks.isolate import random_bits

COUNT = itertools.count(10**30)


@pytest.mark.parametrize(
    ("mint", "bits"),
    [
        (lambda: f"resp_{secrets.token_hex(16)}", 128),
        (lambda: f"resp_{secrets.token_hex(15)}", 120),
        (lambda: secrets.token_urlsafe(15), 120),
        (lambda: str(uuid.uuid4()), 122),
        (lambda: secrets.token_hex(8), 64),
        (lambda: secrets.token_hex(8) * 2, 64),
        (lambda: "constant", 0),
    ],
)
def test_random_bits_are_counted(mint, bits):
    assert random_bits([mint() for _ in range(1000)]) == pytest.approx(bits, abs=0.4)


@pytest.mark.parametrize(
    "mint",
    [lambda: f"{next(COUNT):032x}", lambda: str(uuid.uuid1()), lambda: f"{time.time_ns():016x}{secrets.token_hex(8)}"],
    ids=["counted", "by the clock and the machine", "half of it the time"],
)
def test_what_counts_up_is_not_random(mint):
    assert random_bits([mint() for _ in range(1000)]) < 100

"""What can be told of expectations by reading them alone: their groups, and whether they want a refusal.

It knows the words `either`, `by …` and `status`, and nothing about answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

Expectations = Mapping[str, object]


def groups(expect: Expectations) -> Iterator[Expectations]:
    """Go through the expectations themselves and every group inside them, under `either` and under `by <option>`."""
    yield expect
    for word, value in expect.items():
        for inner in _inner(word, value):
            yield from groups(inner)


def _inner(word: str, value: object) -> list[Expectations]:
    if word == "either" and isinstance(value, list):
        return list(value)
    if word.startswith("by ") and isinstance(value, Mapping):
        return list(value.values())
    return []


def may_refuse(expect: Expectations) -> bool:
    """Tell whether some group holds only for an answer that is no 2xx."""
    return any(_wants_refusal(group.get("status")) for group in groups(expect))


def must_accept(expect: Expectations) -> bool:
    """Tell whether every group holds only for a 2xx."""
    return all(group.get("status", "2xx") in ("2xx", 200, 201, 202, 204) for group in groups(expect))


def _wants_refusal(status: object) -> bool:
    statuses = status if isinstance(status, list) else [status]
    return all(isinstance(each, int | str) and str(each)[0] in "45" for each in statuses)

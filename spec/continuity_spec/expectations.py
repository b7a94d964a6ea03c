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
    for _, inner in inner_groups(expect):
        yield from groups(inner)


def inner_groups(expect: Expectations) -> Iterator[tuple[str, Expectations]]:
    """Go through the groups directly inside, each with what it holds under: `either`, `or`, or an option's value."""
    for word, value in expect.items():
        if word == "either" and isinstance(value, list):
            yield from (("or" if number else "either", group) for number, group in enumerate(value))
        if word.startswith("by ") and isinstance(value, Mapping):
            yield from ((f"{word.removeprefix('by ')}={choice}:", group) for choice, group in value.items())


def may_refuse(expect: Expectations) -> bool:
    """Tell whether some group holds only for an answer that is no 2xx."""
    return any(_wants_refusal(group.get("status")) for group in groups(expect))


def refuses(expect: Expectations) -> bool:
    """Tell whether it holds only for an answer that is no 2xx, whichever group applies."""
    if "status" in expect:
        return _wants_refusal(expect["status"])
    inner = [group for _, group in inner_groups(expect)]
    return bool(inner) and all(map(refuses, inner))


def must_accept(expect: Expectations) -> bool:
    """Tell whether every group holds only for a 2xx."""
    return all(group.get("status", "2xx") in ("2xx", 200, 201, 202, 204) for group in groups(expect))


def _wants_refusal(status: object) -> bool:
    statuses = status if isinstance(status, list) else [status]
    return all(isinstance(each, int | str) and str(each)[0] in "45" for each in statuses)

"""Questions about the expectations of a step that can be answered without playing it.

Expectations are a mapping of words to values. The words `either` and `by <option>` hold further mappings, which this package
calls groups: alternatives, and one group for each value of an option. This module is at the bottom of the package, below
`model`, because `model`, `variables`, `lint` and `render` all need to go through these groups. It knows the words `either`, `by …`
and `status`, and nothing about answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

Expectations = Mapping[str, object]


def groups(expect: Expectations) -> Iterator[Expectations]:
    """Yield the expectations themselves, then every group inside them at any depth."""
    yield expect
    for _, inner in inner_groups(expect):
        yield from groups(inner)


def inner_groups(expect: Expectations) -> Iterator[tuple[str, Expectations]]:
    """Yield the groups directly inside, each with its condition: `either`, `or`, or `<option>=<value>:`."""
    for word, value in expect.items():
        if word == "either" and isinstance(value, list):
            yield from (("or" if number else "either", group) for number, group in enumerate(value))
        if word.startswith("by ") and isinstance(value, Mapping):
            yield from ((f"{word.removeprefix('by ')}={choice}:", group) for choice, group in value.items())


def may_refuse(expect: Expectations) -> bool:
    """True if at least one group demands a 4xx or 5xx."""
    return any(_demands_refusal(group.get("status")) for group in groups(expect))


def refuses(expect: Expectations) -> bool:
    """True if every group demands a 4xx or 5xx: the request is refused whichever group applies."""
    if "status" in expect:
        return _demands_refusal(expect["status"])
    inner = [group for _, group in inner_groups(expect)]
    return bool(inner) and all(map(refuses, inner))


def must_accept(expect: Expectations) -> bool:
    """True if every group demands a 2xx. Without a status, a 2xx is demanded."""
    demanded = (group.get("status", group.get("only_if", "2xx")) for group in groups(expect))
    return all(status in ("2xx", 200, 201, 202, 204) for status in demanded)


def _demands_refusal(status: object) -> bool:
    statuses = status if isinstance(status, list) else [status]
    return all(isinstance(each, int | str) and str(each)[0] in "45" for each in statuses)

"""Find the variables (`$name`) of a scenario, and the kind of value that each holds.

The kind follows from the position: `$s` in `session: $s` is a session. This module knows positions, and no values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from continuity_spec.expectations import groups
from continuity_spec.model import Scenario, Step

_VARIABLE = re.compile(r"\$[a-z][a-z0-9-]*")

_KINDS_IN_REQUESTS = {
    "session": "session",
    "session_id": "session",
    "next": "session",
    "response": "response",
    "previous_response_id": "response",
    "conversation": "slug",
    "idempotency_key": "key",
    "messages": "list of messages",
    "writes": "note",
    "reads": "note",
}
_KINDS_IN_EXPECTATIONS = {
    "session": "session",
    "announces": "session",
    "goes_on_with": "session",
    "$HEADER": "session",
    "response": "response",
    "answer": "answer",
    "like": "likeness",
    "reads": "note",
}


def uses(scenario: Scenario) -> Iterator[tuple[str, str, Step]]:
    """Yield every use of a variable at a position that has a kind: the variable, the kind, the step."""
    for step in scenario.walk():
        for variable, kind in _in_step(step):
            yield variable, kind, step


def _in_step(step: Step) -> Iterator[tuple[str, str]]:
    yield from _in_mapping(_positions(step), _KINDS_IN_REQUESTS)
    for group in groups(step.expect):
        yield from _in_mapping(group, _KINDS_IN_EXPECTATIONS)
        headers = group.get("headers")
        if isinstance(headers, Mapping):
            yield from _in_mapping(headers, _KINDS_IN_EXPECTATIONS)


def _positions(step: Step) -> Mapping[str, object]:
    """Collect the parameters of a step, with those inside `params`, `model` and `rows`, by their position."""
    params = step.params.get("params") if step.verb == "control" else step.params
    model = step.params.get("model")
    rows = step.params.get("rows")
    positions = dict(params) if isinstance(params, Mapping) else {}
    positions.update(model if isinstance(model, Mapping) else {})
    for number, row in enumerate(rows if isinstance(rows, list) else []):
        positions.update({f"{key} {number}": value for key, value in row.items()})
    return positions


def _in_mapping(data: Mapping[str, object], kinds: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key, value in data.items():
        kind = kinds.get(key.split(" ")[0])
        for item in _values(value):
            if kind is not None and isinstance(item, str) and _VARIABLE.fullmatch(item):
                yield item, kind


def _values(value: object) -> list[object]:
    """The value, the values of a list, or the two of `session: {tip: …, alias: …}`."""
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else [value]

"""Infer from the steps of a scenario which more basic requirements it rests on.

A scenario about restarts cannot show anything if the server keeps no history at all. So where a scenario fails in the same way as a requirement that it rests on,
the failure is that requirement's: the scenario is *blocked by* it. An entry can say what it rests on itself (`rests_on`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import takewhile
from types import MappingProxyType

from continuity_spec.model import Step

_TURNS = frozenset({"doubled", "missing", "foreign", "reordered", "partial"})
"""The kinds of failures that are about what the model saw."""
_EVERYTHING = _TURNS | {"session", "status"}

FOUNDATIONS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "HISTORY-02": _TURNS,
        "HISTORY-04": frozenset({"status"}),
        "ECHO-02": frozenset({"session"}),
        "ECHO-05": frozenset({"session"}),
        "SLUG-02": _EVERYTHING,
        "SLUG-13": _EVERYTHING,
        "DERIVE-01": frozenset({"session"}),
        "DERIVE-15": frozenset({"foreign", "doubled", "partial"}),
        "HISTORY-10": _TURNS,
        "HISTORY-13": _TURNS,
        "SLUG-15": frozenset({"status", "body"}),
        "SLUG-09": _EVERYTHING,
        "SLUG-03": _EVERYTHING,
        "ISOLATE-10": frozenset({"answer"}),
        "DURABLE-01": _EVERYTHING | {"reads"},
        "DURABLE-02": _EVERYTHING | {"reads"},
        "HISTORY-05": _EVERYTHING,
        "COMPRESS-14": _EVERYTHING | {"summary"},
        "COMPRESS-01": frozenset({"session", "status"}),
        "COMPRESS-02": _TURNS | {"summary", "status"},
        "ECHO-11": frozenset({"session", "status"}),
        "DELETE-01": frozenset({"status"}),
        "MIGRATE-01": _EVERYTHING | {"start", "body"},
    }
)
"""The requirements that others rest on, the most basic first, and the kinds of failures that each of them is about.

Each of them rests only on those before it.
"""
_IN_THEIR_OWN_AREA = frozenset({"HISTORY-02", "HISTORY-04", "ECHO-02", "ECHO-05", "SLUG-02", "SLUG-13", "DERIVE-15"})
"""Those that requirements of the same area rest on, too. The others are about one intervention, or one way to name a session, like their whole area."""


def explains(identity: str, kind: str) -> bool:
    """Whether a failure of this kind can be a failure of this requirement. One that is not in the table is about everything."""
    kinds = FOUNDATIONS.get(identity)
    return kinds is None or kind.partition(" ")[0] in kinds


def inferred_foundations(requirement_id: str, steps: Sequence[Step]) -> tuple[str, ...]:
    """Find the requirements that a scenario of this requirement rests on, the most basic first."""
    parts = [part for step in steps for part in step.walk()]
    found = _of_turns(parts) | _of_interventions(parts)
    before = takewhile(lambda identity: identity != requirement_id, FOUNDATIONS)
    return tuple(identity for identity in before if identity in found and _may_block(identity, requirement_id))


def _may_block(identity: str, requirement_id: str) -> bool:
    same_area = identity.partition("-")[0] == requirement_id.partition("-")[0]
    return identity in _IN_THEIR_OWN_AREA or not same_area


def _of_turns(parts: Sequence[Step]) -> set[str]:
    chats = [part for part in parts if part.verb == "chat"]
    responses = [part for part in parts if part.verb == "respond"]
    headers = [part for part in chats if "session" in part.params]
    by_slug = [part for part in responses if "conversation" in part.params]
    found = {"HISTORY-04", "ECHO-02"} if headers else set()
    found |= {"HISTORY-02"} if len(headers) > 1 or len(responses) > 1 else set()
    found |= {"ECHO-05"} if any("session" in part.expect for part in responses) else set()
    found |= {"SLUG-02"} if len(by_slug) > 1 else set()
    found |= {"ECHO-11"} if any(_is_by_header_alone(part) for part in responses) else set()
    found |= {"SLUG-13"} if any("previous_response_id" in part.params for part in responses) else set()
    derived = [part for part in chats if "session" not in part.params]
    found |= {"DERIVE-01", "DERIVE-15"} if derived else set()
    found |= {"HISTORY-10"} if _sent(headers) & _captured(derived) else set()
    return found | ({"HISTORY-13"} if _sent(headers) & _captured(responses) else set())


def _is_by_header_alone(respond: Step) -> bool:
    return "session" in respond.params and not respond.params.keys() & {"conversation", "previous_response_id"}


def _of_interventions(parts: Sequence[Step]) -> set[str]:
    found: set[str] = set()
    for part in parts:
        found |= _BY_CONTROL.get(part.control or "", frozenset())
        if part.verb in {"get", "delete"} and "response" in part.params:
            found.add("SLUG-15")
        if part.params.get("store") is False:
            found.add("SLUG-09")
    keys = [part.params["idempotency_key"] for part in parts if "idempotency_key" in part.params]
    return found | ({"ISOLATE-10"} if len(keys) > len(set(keys)) else set())


_BY_CONTROL: dict[str, AbstractSet[str]] = {
    "restart": {"DURABLE-01"},
    "kill": {"DURABLE-02"},
    "evict": {"SLUG-03"},
    "evict-by-pressure": {"SLUG-03"},
    "break_store": {"HISTORY-05"},
    "legacy": {"MIGRATE-01"},
    "compress": {"COMPRESS-14", "COMPRESS-01", "COMPRESS-02"},
}


def _sent(steps: Iterable[Step]) -> set[object]:
    """The session variables that requests send."""
    return {value for step in steps if isinstance(value := step.params["session"], str)}


def _captured(steps: Iterable[Step]) -> set[object]:
    """The session variables that answers give."""
    return {value for step in steps if isinstance(value := step.expect.get("session"), str)}

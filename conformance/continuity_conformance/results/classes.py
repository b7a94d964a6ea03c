"""The classes of conformance that a server may claim, and the verdict on each.

The catalogue: "A verdict names the classes that it covers, so that offering nothing is not conformance."
A requirement belongs to at most one class: by its id, else by its area. DISCOVER, ERROR and DELETE belong to no class and count for the verdict of the whole
release only. Each pack is a class of its own; no other class depends on it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from continuity_conformance.core.verdicts import Result, RunVerdict, Verdict, counts, run_verdict
from continuity_spec import Level, Requirement

_BY_ID: Final[Mapping[str, str]] = MappingProxyType(
    {
        "DURABLE-01": "Core",
        "HISTORY-05": "Crash",
        "HISTORY-06": "Crash",
        "HISTORY-07": "Crash",
        "HISTORY-14": "Crash",
        "DERIVE-13": "Tenants",
        "SLUG-17": "Tenants",
        "ISOLATE-06": "Tenants",
        "ISOLATE-07": "Tenants",
    }
)
_BY_AREA: Final[Mapping[str, str]] = MappingProxyType(
    {
        "DERIVE": "Core",
        "ECHO": "Core",
        "HISTORY": "Core",
        "ISOLATE": "Core",
        "SLUG": "Responses",
        "MIGRATE": "Responses",
        "STREAM": "Streaming",
        "COMPRESS": "Compression",
        "DURABLE": "Crash",
        "CONCUR": "Concurrency",
        "ENV": "Environment",
    }
)
NAMES: Final = ("Core", "Responses", "Streaming", "Compression", "Tenants", "Crash", "Concurrency", "Environment")


@dataclass(frozen=True, slots=True)
class ClassVerdict:
    """The verdict on one class. `verdict` is None where no requirement of the class applies to the target."""

    name: str
    verdict: RunVerdict | None
    counts: Mapping[Verdict, int]


def class_of(result: Result | Requirement) -> str | None:
    return f"pack {result.pack}" if result.pack else _BY_ID.get(result.id) or _BY_AREA.get(result.area.upper())


def class_verdicts(results: Iterable[Result], *, fail_on: Level = Level.MUST) -> tuple[ClassVerdict, ...]:
    """The verdict on each class that has results: in the order of the catalogue, then the packs."""
    members: dict[str, list[Result]] = {}
    for result in results:
        members.setdefault(class_of(result) or "", []).append(result)
    names = (*NAMES, *(name for name in members if name and name not in NAMES))
    return tuple(_judge(name, members[name], fail_on) for name in names if name in members)


def _judge(name: str, results: Sequence[Result], fail_on: Level) -> ClassVerdict:
    applies = any(result.verdict is not Verdict.NOT_APPLICABLE for result in results)
    return ClassVerdict(name, run_verdict(results, fail_on=fail_on) if applies else None, counts(results))

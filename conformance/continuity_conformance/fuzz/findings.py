"""Findings of random testing: the smallest request of each kind is kept, and a finding fails a check like any other."""

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NoReturn

from continuity_conformance.core.failure import Unmet
from continuity_conformance.http.messages import Answer, Request
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.interventions import made_step

_IDS: Final = re.compile(r"/(sessions|responses)/[^/]+")
_SHRINK_ATTEMPTS: Final = 25
"""How many failing requests of one kind may ask for a smaller one. The smallest of these is short enough to read."""


class Concern(enum.StrEnum):
    """What an answer to a generated request can violate. The value is the expectation that a failure names."""

    SUCCESS = "accepted"
    REFUSAL = "refused"
    FOREIGN = "refused (OpenAI's fields)"
    DOCUMENTED = "valid"
    ALIVE = "alive"
    METHOD = "method"
    HEADER = "header"


@dataclass(frozen=True, slots=True)
class Finding:
    """One request with a wrong answer."""

    concern: str
    operation: str
    expected: str
    actual: str
    request: Request
    answer: Answer

    @property
    def size(self) -> int:
        return (
            len(self.request.url) + len(self.request.data or b"") + sum(len(value) for _, value in self.request.headers)
        )


def operation_label(request: Request) -> str:
    """Return method and path as the OpenAPI document names them, with `{id}` for the id in the request."""
    path = _IDS.sub(r"/\1/{id}", request.path)
    return f"{request.method} {path}"


class WorthShrinking(Exception):  # noqa: N818 - it is a signal to hypothesis, not an error
    """Signal to hypothesis: this example fails, look for a smaller one."""


class SmallestFindings:
    """The findings so far, in the order of discovery. Each concern and operation keeps its smallest request only."""

    def __init__(self) -> None:
        self._smallest: dict[tuple[str, str], Finding] = {}
        self._times: dict[tuple[str, str], int] = {}

    def add(self, findings: Iterable[Finding]) -> bool:
        """Add findings. True if it is worth looking for smaller requests."""
        worth_shrinking = False
        for finding in findings:
            key = (finding.concern, finding.operation)
            known = self._smallest.get(key)
            self._smallest[key] = finding if known is None or finding.size < known.size else known
            self._times[key] = self._times.get(key, 0) + 1
            worth_shrinking = worth_shrinking or self._times[key] <= _SHRINK_ATTEMPTS
        return worth_shrinking

    def of(self, concern: str) -> list[Finding]:
        return [finding for finding in self._smallest.values() if finding.concern == concern]

    def all(self) -> list[Finding]:
        return list(self._smallest.values())


def fail_on_findings(dialogue: Dialogue, findings: list[Finding]) -> None:
    """Fail the check with its first finding, if there is one. The failure lists the operations of the others."""
    if findings:
        _fail(dialogue, findings)


def _fail(dialogue: Dialogue, findings: list[Finding]) -> NoReturn:
    first = findings[0]
    step = made_step("request", {})
    dialogue.exchanges[:] = [
        Exchange(step, first.operation, "request", "alice", first.request, first.answer, at=0.0),
    ]
    others = sorted({finding.operation for finding in findings[1:]} - {first.operation})
    actual = f"{first.actual} (also {', '.join(others)})" if others else first.actual
    raise Unmet(first.expected, actual, expectation=first.concern, step=f"request {first.operation}", number="1")

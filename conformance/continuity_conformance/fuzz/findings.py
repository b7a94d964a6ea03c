"""Findings of random testing, the smallest request of each kept, and how they read in the words of all other failures."""

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
_SHRUNK_AT_MOST: Final = 25
"""How often a finding may be tried on smaller requests: the smallest of so many is small enough to read."""


class Concern(enum.StrEnum):
    """What an answer to a generated request can break; the word that a failure names as its expectation."""

    SUCCESS = "accepted"
    REFUSAL = "refused"
    FOREIGN = "refused (OpenAI's fields)"
    DOCUMENTED = "valid"
    ALIVE = "alive"
    METHOD = "method"
    HEADER = "header"


@dataclass(frozen=True, slots=True)
class Finding:
    """One request whose answer is not as it must be."""

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


def label_of(request: Request) -> str:
    """An operation as the document names it, whatever id the request has."""
    path = _IDS.sub(r"/\1/{id}", request.path)
    return f"{request.method} {path}"


class Found(Exception):  # noqa: N818 - it is a finding about the target, not an error
    """Tells hypothesis that an example is worth making smaller."""


class Findings:
    """What was found so far, in the order in which it was found. Of each concern and operation the smallest request is kept."""

    def __init__(self) -> None:
        self._smallest: dict[tuple[str, str], Finding] = {}
        self._times: dict[tuple[str, str], int] = {}

    def add(self, findings: Iterable[Finding]) -> bool:
        """Keep them; tells whether smaller requests are worth a try."""
        worth = False
        for finding in findings:
            key = (finding.concern, finding.operation)
            known = self._smallest.get(key)
            self._smallest[key] = finding if known is None or finding.size < known.size else known
            self._times[key] = self._times.get(key, 0) + 1
            worth = worth or self._times[key] <= _SHRUNK_AT_MOST
        return worth

    def of(self, concern: str) -> list[Finding]:
        return [finding for finding in self._smallest.values() if finding.concern == concern]

    def all(self) -> list[Finding]:
        return list(self._smallest.values())


def tell(dialogue: Dialogue, findings: list[Finding]) -> None:
    """Fail the check with its first finding, where there is one. Others are told by their number."""
    if findings:
        _tell(dialogue, findings)


def _tell(dialogue: Dialogue, findings: list[Finding]) -> NoReturn:
    first = findings[0]
    step = made_step("request", {})
    dialogue.exchanges[:] = [
        Exchange(step, first.operation, "request", "alice", first.request, first.answer, at=0.0),
    ]
    others = sorted({finding.operation for finding in findings[1:]} - {first.operation})
    actual = f"{first.actual} (also {', '.join(others)})" if others else first.actual
    raise Unmet(first.expected, actual, expectation=first.concern, step=f"request {first.operation}", number="1")

"""The requests that schemathesis generates for the whole document from the default seed, kept in `requests.json`.

Generating them takes far longer than sending them, and they are the same in every run. `tools/generated_requests.py` writes the file; a test compares
it with what schemathesis generates. A target that offers less gets the requests without the fields and headers that it does not offer.
"""

import functools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from continuity_conformance.core.budget import DEFAULT_EXAMPLES, DEFAULT_SEED, Budget
from continuity_conformance.fuzz.generated.case import GeneratedCase
from continuity_conformance.fuzz.generated.document import TargetOperation, operations_of, whole_document
from continuity_spec.openapi.document import DOCUMENTED_HEADER

REQUESTS: Final = Path(__file__).with_name("requests.json")


def are_shipped(budget: Budget) -> bool:
    """Whether the file has all requests that this budget asks for."""
    return budget.seed == DEFAULT_SEED and budget.examples <= DEFAULT_EXAMPLES


class ShippedCases:
    """The requests for a target with this continuity header."""

    def __init__(self, header: str) -> None:
        self._whole = operations_of(whole_document(header))
        self._cases = _cases(header)

    def of(self, operation: TargetOperation, examples: int) -> Iterator[GeneratedCase]:
        """The requests of an operation, as the target documents it. Of the random ones so many are used."""
        random = 0
        for case in self._cases:
            if case.operation != operation.id:
                continue
            random += case.fuzzing
            adapted = self._adapted(case, operation)
            if adapted is not None and (random <= examples or not case.fuzzing):
                yield adapted

    def _adapted(self, case: GeneratedCase, offered: TargetOperation) -> GeneratedCase | None:
        """The request without what the target does not offer. None if nothing wrong, or something wrong, is left by that."""
        whole = self._whole[case.operation]
        unoffered = {name.lower() for name in whole.headers - offered.headers}
        headers = tuple((name, value) for name, value in case.headers if name.lower() not in unoffered)
        if "header" in case.wrong and len(headers) < len(case.headers):
            return None
        if not isinstance(case.body, dict):
            return replace(case, headers=headers)
        gone = whole.fields - offered.fields
        body = {name: value for name, value in case.body.items() if name not in gone}
        if len(body) < len(case.body) and offered.takes(body) == ("body" in case.wrong):
            return None
        return replace(case, headers=headers, body=body)


@functools.cache
def _cases(header: str) -> tuple[GeneratedCase, ...]:
    text = REQUESTS.read_text(encoding="utf-8").replace(DOCUMENTED_HEADER, header)
    return tuple(map(GeneratedCase.from_json, json.loads(text)["requests"]))

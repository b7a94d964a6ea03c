"""Generate requests with schemathesis: the examples of the document, its coverage, and random data, which hypothesis also shrinks.

schemathesis takes a second to load and longer to generate: the requests of the default seed are shipped (`shipped.py`).
"""

import contextlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import requests
import schemathesis
from hypothesis import Phase
from hypothesis.errors import HypothesisException
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.core.transport import Response
from schemathesis.generation.hypothesis.builder import HypothesisTestConfig, HypothesisTestMode, create_test
from schemathesis.generation.meta import CoverageScenario, TestPhase, coverage_scenario

from continuity_conformance.core.budget import Budget
from continuity_conformance.fuzz.explore import GENERATING, hypothesis_settings
from continuity_conformance.fuzz.findings import WorthShrinking
from continuity_conformance.fuzz.generated.answer_review import REFUSALS
from continuity_conformance.fuzz.generated.case import NO_BODY, GeneratedCase, Oddity

SchemathesisCase = Any
"""Case of schemathesis. Its type parameters are not useful here: there is one kind of schema."""
Judge = Callable[[GeneratedCase], None]
ALL_PHASES: Final = tuple(HypothesisTestMode)
RANDOM_ONLY: Final = (HypothesisTestMode.FUZZING,)
_URL: Final = "http://127.0.0.1"
_CLIENT_HEADERS: Final = frozenset(
    {"x-schemathesis-testcaseid", "user-agent", "content-length", "accept", "accept-encoding", "connection"}
)
"""Headers that `requests` and schemathesis add. Our own client sets its own."""
_PLACES: Final = {"path_parameters": "path"}


class LiveGenerator:
    """Generates the requests of one document."""

    def __init__(self, document: Mapping[str, Any], budget: Budget) -> None:
        load_all_checks()
        refusals = {"negative_data_rejection": {"expected-statuses": [str(status) for status in REFUSALS]}}
        # An explicit configuration: schemathesis would else read a settings file in the user's working folder.
        config = schemathesis.Config.from_dict({"seed": budget.seed, "checks": refusals})
        self._schema = schemathesis.openapi.from_dict(dict(document), config=config)
        self._schema.config.update(base_url=_URL)
        self._budget = budget
        self._refusal_check = CHECKS.get_one("negative_data_rejection")
        operations = [result.ok() for result in self._schema.get_all_operations() if isinstance(result, Ok)]
        self._operations = {each.definition.raw["operationId"]: each for each in operations}

    def explore(self, operation: str, judge: Judge, phases: Sequence[HypothesisTestMode] = ALL_PHASES) -> None:
        """Judge the requests of an operation. A judge that raises WorthShrinking gets smaller ones."""
        test = create_test(
            operation=self._operations[operation],
            test_func=lambda case: judge(self._generated(case)),
            config=HypothesisTestConfig(
                project=self._schema.config,
                modes=list(phases),
                settings=hypothesis_settings(self._budget, Phase.explicit),
                seed=self._budget.seed,
                apply_ci_profile=False,
            ),
        )
        # The findings are already stored. Hypothesis reports (flaky, several failures) are meant for tests of functions.
        with GENERATING, contextlib.suppress(WorthShrinking, BaseExceptionGroup, HypothesisException):
            test()

    def _generated(self, case: SchemathesisCase) -> GeneratedCase:
        """The case as it is sent, and what schemathesis says about it."""
        trimmed = {
            name: value.strip(" \t") if isinstance(value, str) else value
            for name, value in (case.headers or {}).items()
        }
        case.headers = type(case.headers)(trimmed)
        prepared = requests.Request(**case.as_transport_kwargs(base_url=_URL)).prepare()
        meta, scenario = case.meta, coverage_scenario(case)
        negative = meta is not None and meta.generation.mode.is_negative
        places = [place for place in meta.components if meta.is_negative_at(place)] if negative else []
        url = urlsplit(str(prepared.url))
        return GeneratedCase(
            operation=case.operation.definition.raw["operationId"],
            method=str(prepared.method),
            path=_path_values(case.operation.path, url.path),
            query=url.query,
            headers=tuple(_headers(prepared)),
            body=_body(prepared),
            wrong=tuple(_PLACES.get(place.value, place.value) for place in places),
            refused=negative and self._must_be_refused(case, prepared),
            oddity=_oddity(case, scenario),
            fuzzing=meta is not None and meta.phase.name is TestPhase.FUZZING,
            description=(meta.phase.data.description or "") if negative else "",
        )

    def _must_be_refused(self, case: SchemathesisCase, prepared: requests.PreparedRequest) -> bool:
        """Whether schemathesis objects to a success: some wrong data are right once they are on the wire."""
        try:
            case.validate_response(Response(200, {}, b"{}", prepared, 0.0, verify=False), checks=[self._refusal_check])
        except FailureGroup:
            return True
        return False


def _oddity(case: SchemathesisCase, scenario: CoverageScenario | None) -> Oddity:
    if scenario is CoverageScenario.UNSPECIFIED_HTTP_METHOD:
        return Oddity.METHOD
    lacks_id = scenario is CoverageScenario.MISSING_PARAMETER and case.operation.path_parameters
    return Oddity.NO_ID if lacks_id else Oddity.NONE


def _path_values(template: str, path: str) -> dict[str, str]:
    """The decoded values of the parameters in a path."""
    pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.*)", re.escape(template))
    match = re.fullmatch(pattern, path)
    return {name: unquote(value) for name, value in match.groupdict().items()} if match else {}


def _headers(prepared: requests.PreparedRequest) -> list[tuple[str, str]]:
    return [
        (name, value.decode("latin-1") if isinstance(value, bytes) else value)
        for name, value in prepared.headers.items()
        if name.lower() not in _CLIENT_HEADERS
    ]


def _body(prepared: requests.PreparedRequest) -> object:
    body = prepared.body.encode() if isinstance(prepared.body, str) else prepared.body
    if not isinstance(body, bytes):
        return NO_BODY
    try:
        return json.loads(body)
    except ValueError:
        return body

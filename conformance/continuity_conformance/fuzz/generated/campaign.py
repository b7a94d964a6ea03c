"""The campaign: one round of generated requests on each operation, shared by all CONTRACT requirements.

Each operation gets our boundary values and the examples, coverage and fuzzing phases of schemathesis. Every answer is
reviewed for all concerns at once, and each requirement then reads the findings of its own concern. An operation that
never succeeded shows nothing, so each one is first called with data that must be accepted.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import requests
import schemathesis
from hypothesis import Phase
from hypothesis.errors import HypothesisException
from requests.structures import CaseInsensitiveDict
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation import GenerationMode
from schemathesis.generation.hypothesis.builder import HypothesisTestConfig, HypothesisTestMode, create_test
from schemathesis.generation.meta import (
    CaseMetadata,
    ComponentInfo,
    GenerationInfo,
    PhaseInfo,
    TestPhase,
    build_phase_data,
)

from continuity_conformance.core.budget import Budget
from continuity_conformance.fuzz.explore import hypothesis_settings
from continuity_conformance.fuzz.findings import SmallestFindings, WorthShrinking
from continuity_conformance.fuzz.generated.answer_review import BODY_SCHEMAS, AnswerReview, SentCase, body_validator
from continuity_conformance.fuzz.generated.boundary_values import boundary_fields, non_numbers
from continuity_conformance.fuzz.generated.document import documented_statuses, request_fields, target_document
from continuity_conformance.fuzz.names import MAX_LENGTH, RunNames
from continuity_conformance.fuzz.sync_client import SyncClient
from continuity_conformance.http.messages import Request, parse_json
from continuity_conformance.target.profile import CHAT_PATH, CONVERSATIONS_PATH, RESPONSES_PATH

ApiOperation = Any
"""APIOperation of schemathesis. Its type parameters are not useful here: there is one kind of schema."""
Case = Any
"""Case of schemathesis, likewise."""

_STATE_STATUSES: Final = (403, 404, 409, 429)
"""Documented refusals that depend on stored data and not on the request."""
_REFUSALS: Final = (400, 401, 403, 404, 409, 413, 414, 415, 422, 431, "5xx")
_CLIENT_HEADERS: Final = frozenset(
    {"x-schemathesis-testcaseid", "user-agent", "content-length", "accept", "accept-encoding", "connection"}
)
"""Headers that `requests` and schemathesis add. Our own client sets its own."""
_WITH_FIELDS: Final = (CHAT_PATH, RESPONSES_PATH, CONVERSATIONS_PATH)
"""The paths whose requests have the body fields that the profile names."""
_FIRST: Final = ("createChatCompletion", "createResponse", "createConversation")
_OPTIONAL: Final = frozenset({"getCapabilities", "listModels", "getHealth", "getResponse", "deleteResponse"})
"""Operations that a target may lack, which other requirements report: they are tried once."""


@dataclass(slots=True)
class Campaign:
    """The result. `reached`: operations that succeeded at least once. `wanted`: operations that have to succeed."""

    findings: SmallestFindings = field(default_factory=SmallestFindings)
    wanted: list[str] = field(default_factory=list)
    reached: set[str] = field(default_factory=set)
    requests: int = 0

    @property
    def unreached(self) -> list[str]:
        return [label for label in self.wanted if label not in self.reached]


def run_campaign(client: SyncClient, names: RunNames, budget: Budget) -> Campaign:
    """Try all operations that the target offers."""
    document = target_document(client.target)
    schema = schemathesis.openapi.from_dict(document, config=_config(document, budget))
    schema.config.update(base_url=client.url)
    runner = _CampaignRunner(client, names, budget, schema)
    operations = {each.definition.raw["operationId"]: each for each in _operations(schema)}
    available = runner.reach(operations)
    for name in sorted(operations, key=lambda name: (name not in _FIRST, "delete" in name)):
        if name in available:
            runner.explore(operations[name])
    runner.campaign.requests = client.requests_sent
    return runner.campaign


def _operations(schema: Any) -> list[ApiOperation]:
    return [result.ok() for result in schema.get_all_operations()]


def _config(document: Mapping[str, Any], budget: Budget) -> schemathesis.Config:
    """Return an explicit configuration: schemathesis would else read a settings file in the user's working folder.

    The statuses that count as accepted come from the document.
    """
    operations = [
        {
            "include-operation-id": operation["operationId"],
            "checks": {"positive_data_acceptance": {"expected-statuses": _accepted_statuses(document, path, method)}},
        }
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if isinstance(operation, dict) and "operationId" in operation
    ]
    refusals = {"negative_data_rejection": {"expected-statuses": [str(status) for status in _REFUSALS]}}
    return schemathesis.Config.from_dict({"seed": budget.seed, "checks": refusals, "operations": operations})


def _accepted_statuses(document: Mapping[str, Any], path: str, method: str) -> list[str]:
    statuses = documented_statuses(document, path, method)
    return ["2xx", *(str(status) for status in statuses if status in _STATE_STATUSES)]


class _CampaignRunner:
    def __init__(self, client: SyncClient, names: RunNames, budget: Budget, schema: Any) -> None:
        self._client = client
        self._names = names
        self._budget = budget
        self._schema = schema
        self._review = AnswerReview(client)
        self.campaign = Campaign()

    # Reaching: call each operation once with data that must be accepted

    def reach(self, operations: Mapping[str, ApiOperation]) -> set[str]:
        """Call each operation with real ids. Return the names of those that the target has."""
        with self._client.room(1):
            return {name for name, case in self._first_cases(operations) if self._is_available(name, case)}

    def _is_available(self, name: str, case: Case) -> bool:
        sent = self._send(case)
        if name in _OPTIONAL and not sent.answer.accepted:
            return False
        self.campaign.wanted.append(case.operation.label)
        self._add_findings(sent, shrink=False)
        return True

    def _first_cases(self, operations: Mapping[str, ApiOperation]) -> Iterator[tuple[str, Case]]:
        """Yield one case for each operation: turns first, then reads, then deletions of what the turns stored."""
        ids: dict[str, str] = {}
        if "createResponse" in operations:
            plain = self._plain_bodies["createResponse"]
            yield "createResponse", self._case(operations["createResponse"], body=plain)
            ids["response_id"] = str(self._review.body_id(self._last_answer))
            ids["session_id"] = next(iter(self._last_answer.fields(self._client.target.header)), "")
        if "createChatCompletion" in operations:
            ids["session_id"] = self._names.session()
            yield "createChatCompletion", self._first_chat(operations["createChatCompletion"], ids["session_id"])
        if "createConversation" in operations:
            yield "createConversation", self._case(operations["createConversation"], body={})
            ids["conversation_id"] = str(self._review.body_id(self._last_answer))
        for name in sorted(operations.keys() - set(_FIRST), key=lambda name: ("delete" in name, name)):
            operation = operations[name]
            needed = {parameter.name for parameter in operation.path_parameters}
            if all(map(ids.get, needed)):
                yield name, self._case(operation, path_parameters={each: ids[each] for each in needed})

    def _first_chat(self, operation: ApiOperation, session: str) -> Case:
        """Return a chat turn with a session that we name, so that its id is known even if the target does not reveal it."""
        plain, field = self._plain_bodies["createChatCompletion"], self._client.target.profile.body
        if field:
            return self._case(operation, body={**plain, field: session})
        return self._case(operation, body=plain, headers=CaseInsensitiveDict({self._client.target.header: session}))

    @property
    def _plain_bodies(self) -> dict[str, dict[str, Any]]:
        model = self._client.target.profile.model
        return {
            "createChatCompletion": {"model": model, "messages": [{"role": "user", "content": "Hello"}]},
            "createResponse": {"model": model, "input": "Hello"},
        }

    def _case(self, operation: ApiOperation, **parts: Any) -> Case:
        media = {"media_type": "application/json"} if "body" in parts else {}
        return operation.Case(**parts, **media)

    # Exploring: boundary values, and what schemathesis generates

    def explore(self, operation: ApiOperation) -> None:
        """Try our boundary values, then the examples, coverage and fuzzing of schemathesis. Fuzzing also shrinks."""

        def judge(case: Case) -> None:
            self._rename(case)
            # Cases of the coverage phase are already minimal, and an exception would end the phase.
            is_fuzzing = case.meta is not None and case.meta.phase.name is TestPhase.FUZZING
            self._add_findings(self._send(case), shrink=is_fuzzing)

        for case in self._boundary_cases(operation):
            judge(case)
        test = create_test(operation=operation, test_func=judge, config=self._settings())
        # The findings are already stored. Hypothesis reports (flaky, several failures) are meant for tests of functions.
        with contextlib.suppress(WorthShrinking, BaseExceptionGroup, HypothesisException):
            test()

    def _boundary_cases(self, operation: ApiOperation) -> Iterator[Case]:
        """Yield plain requests, each with one value on or beyond a limit of the document."""
        query = operation.get_parameter_set(ParameterLocation.QUERY).schema["properties"]
        for name, text in non_numbers(query):
            meta = _meta(ParameterLocation.QUERY, f"{name} that is no number", valid=False)
            yield self._case(operation, query={name: text}, _meta=meta)
        if self._client.target.header in operation.get_parameter_set(ParameterLocation.HEADER).schema["properties"]:
            plain = self._plain_bodies[operation.definition.raw["operationId"]]
            headers = CaseInsensitiveDict({self._client.target.header: "s" * MAX_LENGTH})
            meta = _meta(ParameterLocation.HEADER, "the longest session id", valid=True)
            yield self._case(operation, body=plain, headers=headers, _meta=meta)
        for body, name in self._boundary_bodies(operation):
            valid = body_validator(operation).is_valid(body)
            meta = _meta(ParameterLocation.BODY, f"{name} beyond its bounds", valid=valid)
            yield self._case(operation, body=body, _meta=meta)

    def _boundary_bodies(self, operation: ApiOperation) -> Iterator[tuple[dict[str, Any], str]]:
        if operation.label in BODY_SCHEMAS:
            plain = self._plain_bodies[operation.definition.raw["operationId"]]
            for name, value in boundary_fields(request_fields(BODY_SCHEMAS[operation.label])):
                yield {**plain, name: value}, name

    def _settings(self) -> HypothesisTestConfig:
        return HypothesisTestConfig(
            project=self._schema.config,
            modes=list(HypothesisTestMode),
            settings=hypothesis_settings(self._budget, Phase.explicit),
            seed=self._budget.seed,
            apply_ci_profile=False,
        )

    def _rename(self, case: Case) -> None:
        header = self._client.target.header
        case.path_parameters = self._names.path_parameters(case.path_parameters)
        case.headers = type(case.headers)(self._names.headers(header, case.headers))
        if isinstance(case.body, dict):
            case.body = self._names.body(case.body)
            if _is_name(case.body.get("model")):
                # Servers know their models. CONTRACT is about everything else.
                case.body = {**case.body, "model": self._client.target.profile.model}

    # Both

    def _send(self, case: Case) -> SentCase:
        prepared = requests.Request(**case.as_transport_kwargs(base_url=self._client.url)).prepare()
        request = self._request(prepared)
        answer = self._last_answer = self._client.send(request)
        return SentCase(case, prepared, request, answer)

    def _request(self, prepared: requests.PreparedRequest) -> Request:
        generated = [
            (name, value.decode("latin-1") if isinstance(value, bytes) else value)
            for name, value in prepared.headers.items()
            if name.lower() not in _CLIENT_HEADERS
        ]
        body = prepared.body.encode() if isinstance(prepared.body, str) else prepared.body
        path = next((path for path in _WITH_FIELDS if str(prepared.path_url).endswith(path)), "")
        if isinstance(body, bytes) and path:
            body = self._as_the_target_takes_it(str(prepared.method), path, body)
        assert prepared.method is not None
        assert prepared.url is not None
        return Request(
            prepared.method,
            prepared.url,
            (*self._client.base_headers("alice"), *generated),
            body if isinstance(body, bytes) else None,
        )

    def _as_the_target_takes_it(self, method: str, path: str, body: bytes) -> bytes:
        """The body with the target's own fields and names of fields. What is no JSON object stays as it is."""
        profile, generated = self._client.target.profile, parse_json(body.decode("utf-8", "replace"))
        taken = profile.body_of(method, path, generated)
        return body if taken == generated else json.dumps(taken).encode()

    def _add_findings(self, sent: SentCase, *, shrink: bool) -> None:
        if sent.answer.accepted:
            self.campaign.reached.add(sent.case.operation.label)
        if self.campaign.findings.add(list(self._review.findings(sent))) and shrink:
            raise WorthShrinking


def _is_name(model: object) -> bool:
    return isinstance(model, str) and bool(model)


def _meta(place: ParameterLocation, description: str, *, valid: bool) -> CaseMetadata:
    """Return the metadata that schemathesis would give one of our own requests."""
    mode = GenerationMode.POSITIVE if valid else GenerationMode.NEGATIVE
    phase = PhaseInfo(TestPhase.EXAMPLES, build_phase_data(TestPhase.EXAMPLES, description))
    return CaseMetadata(GenerationInfo(0.0, mode), {place: ComponentInfo(mode)}, phase)

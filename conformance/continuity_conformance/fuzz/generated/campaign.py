"""The campaign: on each operation our values on bounds are played, and schemathesis' examples, coverage and fuzzing, once for all requirements.

Each answer is judged for every concern at once; the entries of CONTRACT then ask for their own. A check that never saw an operation succeed
has shown nothing of it, so each operation is first reached with data that must be accepted.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
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
from continuity_conformance.fuzz.explore import settings_of
from continuity_conformance.fuzz.findings import Finding, Findings, Found
from continuity_conformance.fuzz.generated.bounds import fields_on_bounds, words_for_numbers
from continuity_conformance.fuzz.generated.document import document_of, fields_of, statuses
from continuity_conformance.fuzz.generated.judgement import BODIES, Judgement, Sent, body_validator
from continuity_conformance.fuzz.names import Namespace
from continuity_conformance.fuzz.sync_client import Wire
from continuity_conformance.http.messages import Request

Operation = Any
"""schemathesis' APIOperation and Case: generic over a specification of which there is one here."""
Case = Any

_STATE_BOUND: Final = (403, 404, 409, 422, 429)
"""Documented refusals that depend on what is stored, and not on what was sent."""
_REFUSALS: Final = (400, 401, 403, 404, 409, 413, 414, 415, 422, 431, "5xx")
_NOT_OURS: Final = frozenset(
    {"x-schemathesis-testcaseid", "user-agent", "content-length", "accept", "accept-encoding", "connection"}
)
_FIRST: Final = ("createChatCompletion", "createResponse")
_OPTIONAL: Final = frozenset({"getCapabilities", "listModels", "getHealth"})
"""Offered by a target or not, and nobody says which: tried once."""


@dataclass(slots=True)
class Campaign:
    """What came of it. `reached` are the operations that succeeded at least once; `wanted` those that must have."""

    findings: Findings = field(default_factory=Findings)
    wanted: list[str] = field(default_factory=list)
    reached: set[str] = field(default_factory=set)
    requests: int = 0

    @property
    def unreached(self) -> list[str]:
        return [label for label in self.wanted if label not in self.reached]


def play(wire: Wire, names: Namespace, budget: Budget) -> Campaign:
    """Play all operations that the target offers."""
    document = document_of(wire.target)
    schema = schemathesis.openapi.from_dict(document, config=_config(document, budget))
    schema.config.update(base_url=wire.url)
    player = _Player(wire, names, budget, schema)
    operations = {each.definition.raw["operationId"]: each for each in _operations(schema)}
    reaching = player.reach(operations)
    for name in sorted(operations, key=lambda name: (name not in _FIRST, "delete" in name)):
        if name in reaching:
            player.explore(operations[name])
    player.campaign.requests = wire.sent
    return player.campaign


def _operations(schema: Any) -> list[Operation]:
    return [found.ok() for found in schema.get_all_operations()]


def _config(document: Mapping[str, Any], budget: Budget) -> schemathesis.Config:
    """Given explicitly, so that no settings file of the user's folder has a say. Which refusals are fine comes from the document."""
    operations = [
        {
            "include-operation-id": operation["operationId"],
            "checks": {"positive_data_acceptance": {"expected-statuses": _fine(document, path, method)}},
        }
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if isinstance(operation, dict) and "operationId" in operation
    ]
    refusals = {"negative_data_rejection": {"expected-statuses": [str(status) for status in _REFUSALS]}}
    return schemathesis.Config.from_dict({"seed": budget.seed, "checks": refusals, "operations": operations})


def _fine(document: Mapping[str, Any], path: str, method: str) -> list[str]:
    return ["2xx", *(str(status) for status in statuses(document, path, method) if status in _STATE_BOUND)]


class _Player:
    def __init__(self, wire: Wire, names: Namespace, budget: Budget, schema: Any) -> None:
        self._wire = wire
        self._names = names
        self._budget = budget
        self._schema = schema
        self._judgement = Judgement(wire)
        self.campaign = Campaign()

    # Reaching: each operation once with data that must be accepted

    def reach(self, operations: Mapping[str, Operation]) -> set[str]:
        """Try each operation with real ids; gives those that the target has."""
        reached: set[str] = set()
        for name, case in self._openings(operations):
            sent = self._sent(case)
            optional = name in _OPTIONAL and not sent.answer.accepted
            if not optional:
                reached.add(name)
                self.campaign.wanted.append(case.operation.label)
                self._judge(sent, raises=False)
        return reached

    def _openings(self, operations: Mapping[str, Operation]) -> Iterator[tuple[str, Case]]:
        """The readers before the deletions, which come last and take what the first turns have left."""
        profile, session, response = self._wire.target.profile, self._names.fresh(), ""
        chat = self._plain_bodies["createChatCompletion"]
        named = (
            {"body": {**chat, profile.body: session}}
            if profile.body
            else {"body": chat, "headers": self._naming(session)}
        )
        yield "createChatCompletion", self._made(operations["createChatCompletion"], **named)
        if "createResponse" in operations:
            plain = self._plain_bodies["createResponse"]
            yield "createResponse", self._made(operations["createResponse"], body=plain)
            response = str(self._judgement.body_id(self._last))
        ids = {"session_id": session, "response_id": response}
        for name in sorted(operations.keys() - set(_FIRST), key=lambda name: ("delete" in name, name)):
            operation = operations[name]
            needed = {parameter.name for parameter in operation.path_parameters}
            yield name, self._made(operation, path_parameters={name: ids[name] for name in needed})

    @property
    def _plain_bodies(self) -> dict[str, dict[str, Any]]:
        model = self._wire.target.profile.model
        return {
            "createChatCompletion": {"model": model, "messages": [{"role": "user", "content": "Hello"}]},
            "createResponse": {"model": model, "input": "Hello"},
        }

    def _naming(self, session: str) -> CaseInsensitiveDict[str]:
        """The session is named by us, so that its id is known where the target tells none."""
        return CaseInsensitiveDict({self._wire.target.header: session})

    def _made(self, operation: Operation, **parts: Any) -> Case:
        media = {"media_type": "application/json"} if "body" in parts else {}
        return operation.Case(**parts, **media)

    # Exploring: what lies on bounds, and what schemathesis makes up

    def explore(self, operation: Operation) -> None:
        """Our values on bounds; its examples, its coverage and its fuzzing, which makes a failing request smaller."""

        def one(case: Case) -> None:
            self._rename(case)
            # Cases of the coverage are as small as they can be; raising would end the phase.
            self._judge(self._sent(case), raises=case.meta is not None and case.meta.phase.name is TestPhase.FUZZING)

        for case in self._on_bounds(operation):
            one(case)
        test = create_test(operation=operation, test_func=one, config=self._settings())
        # The findings are kept with their smallest request. What hypothesis says of it (flaky, several) is for tests of functions.
        with contextlib.suppress(Found, BaseExceptionGroup, HypothesisException):
            test()

    def _on_bounds(self, operation: Operation) -> Iterator[Case]:
        """Plain requests, each with one value that is on a bound of the document or beyond it."""
        query = operation.get_parameter_set(ParameterLocation.QUERY).schema["properties"]
        for name, text in words_for_numbers(query):
            meta = _meta(ParameterLocation.QUERY, f"{name} that is no number", right=False)
            yield self._made(operation, query={name: text}, _meta=meta)
        for body, name in self._bodies_on_bounds(operation):
            right = body_validator(operation).is_valid(body)
            meta = _meta(ParameterLocation.BODY, f"{name} beyond its bounds", right=right)
            yield self._made(operation, body=body, _meta=meta)

    def _bodies_on_bounds(self, operation: Operation) -> Iterator[tuple[dict[str, Any], str]]:
        if operation.label in BODIES:
            plain = self._plain_bodies[operation.definition.raw["operationId"]]
            for name, value in fields_on_bounds(fields_of(BODIES[operation.label])):
                yield {**plain, name: value}, name

    def _settings(self) -> HypothesisTestConfig:
        return HypothesisTestConfig(
            project=self._schema.config,
            modes=list(HypothesisTestMode),
            settings=settings_of(self._budget, Phase.explicit),
            seed=self._budget.seed,
            apply_ci_profile=False,
        )

    def _rename(self, case: Case) -> None:
        header = self._wire.target.header
        case.path_parameters = self._names.path(case.path_parameters)
        case.headers = type(case.headers)(self._names.fields(header, case.headers))
        if isinstance(case.body, dict):
            case.body = self._names.body(case.body)

    # Both

    def _sent(self, case: Case) -> Sent:
        prepared = requests.Request(**case.as_transport_kwargs(base_url=self._wire.url)).prepare()
        request = self._request(prepared)
        answer = self._last = self._wire.send(request)
        return Sent(case, prepared, request, answer)

    def _request(self, prepared: requests.PreparedRequest) -> Request:
        own = [
            (name, value.decode("latin-1") if isinstance(value, bytes) else value)
            for name, value in prepared.headers.items()
            if name.lower() not in _NOT_OURS
        ]
        body = prepared.body.encode() if isinstance(prepared.body, str) else prepared.body
        assert prepared.method is not None
        assert prepared.url is not None
        return Request(
            prepared.method,
            prepared.url,
            (*self._wire.key_fields("alice"), *own),
            body if isinstance(body, bytes) else None,
        )

    def _judge(self, sent: Sent, *, raises: bool) -> None:
        if sent.answer.accepted:
            self.campaign.reached.add(sent.case.operation.label)
        found: Iterable[Finding] = list(self._judgement.findings(sent))
        if self.campaign.findings.add(found) and raises:
            raise Found


def _meta(place: ParameterLocation, what: str, *, right: bool) -> CaseMetadata:
    """What schemathesis would say of a request of ours."""
    mode = GenerationMode.POSITIVE if right else GenerationMode.NEGATIVE
    phase = PhaseInfo(TestPhase.EXAMPLES, build_phase_data(TestPhase.EXAMPLES, what))
    return CaseMetadata(GenerationInfo(0.0, mode), {place: ComponentInfo(mode)}, phase)

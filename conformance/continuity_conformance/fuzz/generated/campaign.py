"""The campaign: one round of generated requests on each operation, shared by all CONTRACT requirements.

Each operation gets our boundary values, the examples of the document, its coverage and random requests. Every answer is
reviewed for all concerns at once, and each requirement then reads the findings of its own concern. An operation that
never succeeded shows nothing, so each one is first called with data that must be accepted.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from continuity_conformance.core.budget import Budget
from continuity_conformance.fuzz.findings import SmallestFindings, WorthShrinking
from continuity_conformance.fuzz.generated.answer_review import BODY_SCHEMAS, AnswerReview, SentCase
from continuity_conformance.fuzz.generated.boundary_values import boundary_fields, non_numbers
from continuity_conformance.fuzz.generated.case import GeneratedCase, plain_case
from continuity_conformance.fuzz.generated.document import (
    TargetOperation,
    operations_of,
    request_fields,
    target_document,
)
from continuity_conformance.fuzz.generated.shipped import ShippedCases, are_shipped
from continuity_conformance.fuzz.names import MAX_LENGTH, RunNames
from continuity_conformance.fuzz.sync_client import SyncClient
from continuity_conformance.http.messages import Answer, Request, dig

if TYPE_CHECKING:
    from continuity_conformance.fuzz.generated.live import LiveGenerator

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
    runner = _CampaignRunner(client, names, budget, document)
    operations = operations_of(document)
    available = runner.reach(operations)
    client.work.plan(runner.requests_to_come([operations[name] for name in available]))
    for name in sorted(operations, key=lambda name: (name not in _FIRST, "delete" in name)):
        if name in available:
            runner.explore(operations[name])
    runner.campaign.requests = client.requests_sent
    return runner.campaign


class _CampaignRunner:
    def __init__(self, client: SyncClient, names: RunNames, budget: Budget, document: Mapping[str, Any]) -> None:
        self._client = client
        self._names = names
        self._budget = budget
        self._document = document
        self._review = AnswerReview(client)
        self._generator: LiveGenerator | None = None
        self.campaign = Campaign()

    # Reaching: call each operation once with data that must be accepted

    def reach(self, operations: Mapping[str, TargetOperation]) -> set[str]:
        """Call each operation with real ids. Return the names of those that the target has."""
        with self._client.room(1):
            return {case.operation for case in self._first_cases(operations) if self._is_available(case, operations)}

    def _is_available(self, case: GeneratedCase, operations: Mapping[str, TargetOperation]) -> bool:
        sent = self._send(case, operations[case.operation])
        if case.operation in _OPTIONAL and not sent.answer.accepted:
            return False
        self.campaign.wanted.append(sent.label)
        self._add_findings(sent)
        return True

    def _first_cases(self, operations: Mapping[str, TargetOperation]) -> Iterator[GeneratedCase]:
        """Yield one case for each operation: turns first, then reads, then deletions of what the turns stored."""
        ids: dict[str, str] = {}
        if "createResponse" in operations:
            yield plain_case("createResponse", "POST", body=self._plain_bodies["createResponse"])
            ids["response_id"] = _body_id(self._last_answer)
            ids["session_id"] = next(iter(self._last_answer.fields(self._client.target.header)), "")
        if "createChatCompletion" in operations:
            ids["session_id"] = self._names.session()
            yield self._first_chat(ids["session_id"])
        if "createConversation" in operations:
            yield plain_case("createConversation", "POST", body={})
            ids["conversation_id"] = _body_id(self._last_answer)
        for name in sorted(operations.keys() - set(_FIRST), key=lambda name: ("delete" in name, name)):
            operation = operations[name]
            if all(map(ids.get, operation.path_parameters)):
                path = {each: ids[each] for each in operation.path_parameters}
                yield plain_case(name, operation.method, path=path)

    def _first_chat(self, session: str) -> GeneratedCase:
        """Return a chat turn with a session that we name, so that its id is known even if the target does not reveal it."""
        plain, field = self._plain_bodies["createChatCompletion"], self._client.target.profile.body
        if field:
            return plain_case("createChatCompletion", "POST", body={**plain, field: session})
        headers = ((self._client.target.header, session),)
        return plain_case("createChatCompletion", "POST", body=plain, headers=headers)

    @property
    def _plain_bodies(self) -> dict[str, dict[str, Any]]:
        model = self._client.target.profile.model
        return {
            "createChatCompletion": {"model": model, "messages": [{"role": "user", "content": "Hello"}]},
            "createResponse": {"model": model, "input": "Hello"},
        }

    def requests_to_come(self, operations: Iterable[TargetOperation]) -> int:
        """How many requests the exploration of these operations sends, if no failing one is made smaller."""
        shipped = ShippedCases(self._client.target.header)
        return sum(len([*self._boundary_cases(each), *shipped.of(each, self._budget.examples)]) for each in operations)

    # Exploring: boundary values, and what schemathesis generates

    def explore(self, operation: TargetOperation) -> None:
        """Try our boundary values, then the requests that schemathesis generates. Random ones that fail are made smaller."""
        for sent in self._sent(self._boundary_cases(operation), operation):
            self._add_findings(sent)
        if not are_shipped(self._budget):
            self._explore_live(operation)
        elif self._only_a_random_request_fails(operation):
            self._explore_live(operation, only_random=True)

    def _only_a_random_request_fails(self, operation: TargetOperation) -> bool:
        """Send the shipped requests. True if a kind of failure was found by a random one alone: a smaller one is easier to read."""
        cases = ShippedCases(self._client.target.header).of(operation, self._budget.examples)
        kinds_before = len(self.campaign.findings.all())
        found = False
        for sent in self._sent(cases, operation):
            self._add_findings(sent)
            kinds = len(self.campaign.findings.all())
            found, kinds_before = found or (sent.case.fuzzing and kinds > kinds_before), kinds
        return found

    def _explore_live(self, operation: TargetOperation, *, only_random: bool = False) -> None:
        from continuity_conformance.fuzz.generated import live  # noqa: PLC0415 - schemathesis takes a second to load

        def judge(case: GeneratedCase) -> None:
            # Cases of the coverage phase are already minimal, and an exception would end the phase.
            if self._judge(case, operation) and case.fuzzing:
                raise WorthShrinking

        self._generator = self._generator or live.LiveGenerator(self._document, self._budget)
        self._generator.explore(operation.id, judge, live.RANDOM_ONLY if only_random else live.ALL_PHASES)

    def _judge(self, case: GeneratedCase, operation: TargetOperation) -> bool:
        """Send a case with names of this run. True if it is worth looking for a smaller one."""
        return self._add_findings(self._send(self._renamed(case), operation))

    def _renamed(self, case: GeneratedCase) -> GeneratedCase:
        return case.renamed(self._names, self._client.target.header, self._client.target.profile.model)

    def _sent(self, cases: Iterable[GeneratedCase], operation: TargetOperation) -> Iterator[SentCase]:
        """Send cases with names of this run, several at a time: each names a session of its own."""
        renamed = [self._renamed(case) for case in cases]
        requests = [self._request(case, operation) for case in renamed]
        for case, request, answer in zip(renamed, requests, self._client.send_all(requests), strict=True):
            yield SentCase(case, operation, request, answer)

    def _boundary_cases(self, operation: TargetOperation) -> Iterator[GeneratedCase]:
        """Yield plain requests, each with one value on or beyond a limit of the document."""
        for name, text in non_numbers(operation.query):
            what, query = f"{name} that is no number", f"{quote(name)}={quote(text)}"
            yield plain_case(
                operation.id, operation.method, query=query, wrong=("query",), refused=True, description=what
            )
        if self._client.target.header in operation.headers:
            headers = ((self._client.target.header, "s" * MAX_LENGTH),)
            yield plain_case(operation.id, operation.method, body=self._plain_bodies[operation.id], headers=headers)
        for body, name in self._boundary_bodies(operation):
            valid = operation.takes(body)
            wrong = () if valid else ("body",)
            what = f"{name} beyond its bounds"
            yield plain_case(
                operation.id, operation.method, body=body, wrong=wrong, refused=not valid, description=what
            )

    def _boundary_bodies(self, operation: TargetOperation) -> Iterator[tuple[dict[str, Any], str]]:
        if operation.label in BODY_SCHEMAS:
            plain = self._plain_bodies[operation.id]
            for name, value in boundary_fields(request_fields(BODY_SCHEMAS[operation.label])):
                yield {**plain, name: value}, name

    # Both

    def _send(self, case: GeneratedCase, operation: TargetOperation) -> SentCase:
        request = self._request(case, operation)
        answer = self._last_answer = self._client.send(request)
        return SentCase(case, operation, request, answer)

    def _request(self, case: GeneratedCase, operation: TargetOperation) -> Request:
        path = operation.path
        for name, value in case.path.items():
            path = path.replace(f"{{{name}}}", quote(value, safe=""))
        url = f"{self._client.url}{path}{'?' if case.query else ''}{case.query}"
        taken = self._client.target.profile.body_of(case.method, operation.path, case.body)
        # The same bytes as generated, unless the target has fields or names of fields of its own.
        data = case.data if taken == case.body else json.dumps(taken).encode()
        return Request(case.method, url, (*self._client.base_headers("alice"), *case.headers), data)

    def _add_findings(self, sent: SentCase) -> bool:
        """Add what is wrong with an answer. True if it is worth looking for a smaller request."""
        if sent.answer.accepted:
            self.campaign.reached.add(sent.label)
        return self.campaign.findings.add(list(self._review.findings(sent)))


def _body_id(answer: Answer) -> str:
    return str(dig(answer.body, "id"))

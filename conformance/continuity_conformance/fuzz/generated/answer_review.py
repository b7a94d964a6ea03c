"""Review one answer to a generated request, for every concern at once.

The generator has decided whether the data had to be accepted or refused. The contract decides whether the answer is as
documented.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from continuity_conformance.fuzz.findings import Concern, Finding
from continuity_conformance.fuzz.generated.case import GeneratedCase, Oddity
from continuity_conformance.fuzz.generated.document import TargetOperation, model_fields
from continuity_conformance.fuzz.sync_client import SyncClient
from continuity_conformance.http.messages import Answer, Request, dig

_SERVER_ERROR: Final = 500
_MODEL_REFUSED: Final = frozenset({502, 503})
_BAD_REQUEST: Final = frozenset({400, 422})
_NOT_IMPLEMENTED: Final = 501
_METHOD_NOT_ALLOWED: Final = 405
_GENERAL_METHODS: Final = frozenset({"HEAD", "OPTIONS"})
"""HTTP itself or CORS defines these methods, also on paths that do not document them."""
BODY_SCHEMAS: Final = {"POST /v1/chat/completions": "ChatRequest", "POST /v1/responses": "ResponseRequest"}
"""The operations that take a body, and the name of its schema."""
_TOOL_RESULTS: Final = frozenset({"tool", "function_call_output"})
_SELECTORS: Final = ("conversation", "previous_response_id")


STATE_STATUSES: Final = frozenset({403, 404, 409, 429})
"""Refusals that depend on stored data and not on the request. They are right for valid data where they are documented."""
REFUSALS: Final = (400, 401, 403, 404, 409, 413, 414, 415, 422, 431, "5xx")
"""The statuses that refuse wrong data. A server error is another concern."""


@dataclass(frozen=True, slots=True)
class SentCase:
    """A generated case with the names of this run, its operation, the request that was sent for it, and the answer."""

    case: GeneratedCase
    operation: TargetOperation
    request: Request
    answer: Answer

    @property
    def label(self) -> str:
        return self.operation.label


class AnswerReview:
    """Reviews the answers of one target."""

    def __init__(self, client: SyncClient) -> None:
        self._client = client

    def findings(self, sent: SentCase) -> Iterator[Finding]:
        """Yield everything that is wrong with an answer. After a server error nothing else is reviewed."""
        oddity = sent.case.oddity
        # RFC 9110: 501 is right for a method that a server does not know at all. CONTRACT-05 still asks for 405.
        unknown_method = oddity is Oddity.METHOD and sent.answer.status == _NOT_IMPLEMENTED
        crash = [] if unknown_method else list(self._server_errors(sent))
        yield from crash
        if crash:
            return
        if oddity is Oddity.METHOD:
            yield from self._method_findings(sent)
        elif oddity is not Oddity.NO_ID:
            yield from self._answer_findings(sent)

    def _server_errors(self, sent: SentCase) -> Iterator[Finding]:
        """A real model may refuse generated data with 502 or 503. The probe model never does."""
        answer = sent.answer
        if answer.status == 0:
            yield self._finding(Concern.ALIVE, sent, "an answer", answer.error)
        elif answer.status >= _SERVER_ERROR and not (
            answer.status in _MODEL_REFUSED and self._client.target.observed != "probe"
        ):
            yield self._finding(Concern.ALIVE, sent, "no 5xx", str(answer.status))

    def _method_findings(self, sent: SentCase) -> Iterator[Finding]:
        method, answer = sent.request.method, sent.answer
        if method in _GENERAL_METHODS:
            return
        documented = sent.operation.methods
        allowed = {word.strip().upper() for field in answer.fields("Allow") for word in field.split(",")}
        if answer.status != _METHOD_NOT_ALLOWED:
            yield self._finding(Concern.METHOD, sent, "405", str(answer.status))
        elif not documented <= allowed:
            expected = f"Allow with {', '.join(sorted(documented))}"
            yield self._finding(Concern.METHOD, sent, expected, ", ".join(sorted(allowed)) or "no Allow")
        elif not isinstance(dig(answer.body, "error", "message"), str):
            yield self._finding(Concern.METHOD, sent, "the error envelope", answer.text[:120] or "no body")

    def _answer_findings(self, sent: SentCase) -> Iterator[Finding]:
        problems = self._client.contract_problems(sent.request, sent.answer)
        if problems:
            expected, _, actual = problems[0].partition(", found ")
            yield self._finding(Concern.DOCUMENTED, sent, expected, actual)
        if sent.case.wrong:
            yield from self._refusal_findings(sent, problems)
        elif not (sent.answer.status in _BAD_REQUEST and self._may_be_refused(sent)):
            yield from self._acceptance_findings(sent)
        if sent.answer.accepted and sent.label in BODY_SCHEMAS:
            yield from self._header_findings(sent)

    def _refusal_findings(self, sent: SentCase, problems: list[str]) -> Iterator[Finding]:
        concern = Concern.FOREIGN if self._is_wrong_for_model_only(sent) else Concern.REFUSAL
        if self._only_lacks_model(sent):
            return  # a server may have a default model
        if sent.case.refused and not _is_refusal(sent.answer.status):
            what = sent.case.description or "what the document rules out"
            yield self._finding(concern, sent, f"refused with 4xx ({what})", str(sent.answer.status))
        elif problems and not sent.answer.accepted:
            yield self._finding(concern, sent, "the documented error", problems[0])

    def _acceptance_findings(self, sent: SentCase) -> Iterator[Finding]:
        if not (sent.answer.accepted or sent.answer.status in STATE_STATUSES & sent.operation.statuses):
            message = dig(sent.answer.body, "error", "message")
            yield self._finding(Concern.SUCCESS, sent, "accepted", f"{sent.answer.status} {message or ''}".strip())

    def _header_findings(self, sent: SentCase) -> Iterator[Finding]:
        """The session header comes once and is not empty, unless the target never sends one, or nothing was stored."""
        unstored = sent.case.fields.get("store") is False
        if self._client.target.options["tells"] == "nothing" or unstored:
            return
        sessions = sent.answer.fields(self._client.target.header)
        if len(sessions) != 1 or not sessions[0].strip():
            actual = ", ".join(map(repr, sessions)) or "none"
            yield self._finding(Concern.HEADER, sent, f"{self._client.target.header} once, not empty", actual)

    def _may_be_refused(self, sent: SentCase) -> bool:
        """Whether a 400 may be correct for valid data.

        A header beside a slug may name another session, and a tool result may belong to no call. Many servers take 1.0 for no
        integer.
        """
        body = sent.case.fields
        if any(isinstance(value, float) and value.is_integer() for value in body.values()):
            return True
        selects = any(body.get(name) is not None for name in _SELECTORS)
        items = body.get("messages") or body.get("input")
        has_results = isinstance(items, list) and any(
            _TOOL_RESULTS & {item.get("role"), item.get("type")} for item in items
        )
        return has_results or (selects and bool(sent.case.header(self._client.target.header)))

    @staticmethod
    def _only_lacks_model(sent: SentCase) -> bool:
        """Whether the body would be valid if it named a model."""
        body = sent.case.body
        if sent.label not in BODY_SCHEMAS or not isinstance(body, dict) or body.get("model") is not None:
            return False
        return sent.operation.takes({**body, "model": "any"})

    def _is_wrong_for_model_only(self, sent: SentCase) -> bool:
        """Whether the body is valid without the fields that only the model reads."""
        body = sent.case.body
        if sent.label not in BODY_SCHEMAS or not isinstance(body, dict) or sent.case.wrong != ("body",):
            return False
        own = {name: value for name, value in body.items() if name not in model_fields(BODY_SCHEMAS[sent.label])}
        return sent.operation.takes(own)

    @staticmethod
    def _finding(concern: Concern, sent: SentCase, expected: str, actual: str) -> Finding:
        label = sent.label if concern is not Concern.METHOD else f"{sent.request.method} {sent.operation.path}"
        return Finding(concern, label, expected, actual, sent.request, sent.answer)


def _is_refusal(status: int) -> bool:
    return status in REFUSALS or status >= _SERVER_ERROR

"""The judgement on one answer to a generated request, for every concern at once.

schemathesis says whether the data was to be accepted or refused; the contract says whether the answer is the documented one.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import jsonschema_rs
import requests
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.failures import FailureGroup
from schemathesis.core.parameters import ParameterLocation
from schemathesis.core.transport import Response
from schemathesis.generation.meta import CoverageScenario, coverage_scenario

from continuity_conformance.fuzz.findings import Concern, Finding
from continuity_conformance.fuzz.generated.document import read_by_model
from continuity_conformance.fuzz.sync_client import Wire
from continuity_conformance.http.messages import Answer, Request, dig

_SERVER_ERROR: Final = 500
_MODEL_REFUSED: Final = frozenset({502, 503})
_BAD_REQUEST: Final = 400
_METHOD_NOT_ALLOWED: Final = 405
_ANYWHERE: Final = frozenset({"HEAD", "OPTIONS"})
"""Methods that HTTP itself or CORS gives a meaning to where nobody documents them."""
BODIES: Final = {"POST /v1/chat/completions": "ChatRequest", "POST /v1/responses": "ResponseRequest"}
"""The operations that take a body, and what the document calls it."""
_RESULTS: Final = frozenset({"tool", "function_call_output"})
_SELECTORS: Final = ("conversation", "previous_response_id")


@functools.cache
def body_validator(operation: Any) -> jsonschema_rs.Validator:
    """What tells whether a body is as the document says."""
    schema = operation.get_body_for_media_type("application/json").validation_schema
    return jsonschema_rs.validator_for(schema)


@dataclass(frozen=True, slots=True)
class Sent:
    """A generated case, as it was sent and answered."""

    case: Any
    prepared: requests.PreparedRequest
    request: Request
    answer: Answer

    @property
    def label(self) -> str:
        return str(self.case.operation.label)


class Judgement:
    """Judges answers of one target."""

    def __init__(self, wire: Wire) -> None:
        load_all_checks()
        self._wire = wire
        self._accepts = CHECKS.get_one("positive_data_acceptance")
        self._refuses = CHECKS.get_one("negative_data_rejection")

    @staticmethod
    def body_id(answer: Answer) -> object:
        return dig(answer.body, "id")

    def findings(self, sent: Sent) -> Iterator[Finding]:
        crash = list(self._alive(sent))
        yield from crash
        if crash:
            return
        scenario = coverage_scenario(sent.case)
        if scenario is CoverageScenario.UNSPECIFIED_HTTP_METHOD:
            yield from self._method(sent)
        elif not (scenario is CoverageScenario.MISSING_PARAMETER and sent.case.operation.path_parameters):
            yield from self._answered(sent)

    def _alive(self, sent: Sent) -> Iterator[Finding]:
        """Where the target's model is somebody's real one, it may refuse what was made up; else nothing is a reason to fail."""
        answer = sent.answer
        if answer.status == 0:
            yield self._finding(Concern.ALIVE, sent, "an answer", answer.error)
        elif answer.status >= _SERVER_ERROR and not (
            answer.status in _MODEL_REFUSED and self._wire.target.observed != "probe"
        ):
            yield self._finding(Concern.ALIVE, sent, "no 5xx", str(answer.status))

    def _method(self, sent: Sent) -> Iterator[Finding]:
        method, answer = sent.request.method, sent.answer
        if method in _ANYWHERE:
            return
        documented = {known.upper() for known in self._documented(sent) if known.upper() not in _ANYWHERE}
        allowed = {word.strip().upper() for field in answer.fields("Allow") for word in field.split(",")}
        if answer.status != _METHOD_NOT_ALLOWED:
            yield self._finding(Concern.METHOD, sent, "405", str(answer.status))
        elif not documented <= allowed:
            expected = f"Allow with {', '.join(sorted(documented))}"
            yield self._finding(Concern.METHOD, sent, expected, ", ".join(sorted(allowed)) or "no Allow")
        elif not isinstance(dig(answer.body, "error", "message"), str):
            yield self._finding(Concern.METHOD, sent, "the error envelope", answer.text[:120] or "no body")

    @staticmethod
    def _documented(sent: Sent) -> list[str]:
        item = sent.case.operation.schema.raw_schema["paths"][sent.case.operation.path]
        return [method for method in item if method in {"get", "post", "delete"}]

    def _answered(self, sent: Sent) -> Iterator[Finding]:
        problems = self._wire.problems(sent.request, sent.answer)
        negative = sent.case.meta is not None and sent.case.meta.generation.mode.is_negative
        if problems:
            expected, _, actual = problems[0].partition(", found ")
            yield self._finding(Concern.DOCUMENTED, sent, expected, actual)
        if negative:
            yield from self._refused(sent, problems)
        elif not (sent.answer.status == _BAD_REQUEST and self._depends_on_history(sent)):
            yield from self._accepted(sent)
        if sent.answer.accepted and sent.label in BODIES:
            yield from self._told(sent)

    def _refused(self, sent: Sent, problems: list[str]) -> Iterator[Finding]:
        concern = Concern.FOREIGN if self._only_foreign(sent) else Concern.REFUSAL
        if self._fails(sent, self._refuses):
            what = sent.case.meta.phase.data.description or "what the document rules out"
            yield self._finding(concern, sent, f"refused with 4xx ({what})", str(sent.answer.status))
        elif problems and not sent.answer.accepted:
            yield self._finding(concern, sent, "the documented error", problems[0])

    def _accepted(self, sent: Sent) -> Iterator[Finding]:
        if self._fails(sent, self._accepts):
            said = dig(sent.answer.body, "error", "message")
            yield self._finding(Concern.SUCCESS, sent, "accepted", f"{sent.answer.status} {said or ''}".strip())

    def _told(self, sent: Sent) -> Iterator[Finding]:
        """Where the target declares that it tells no session, nothing is expected."""
        if self._wire.target.options["tells"] == "nothing":
            return
        told = sent.answer.fields(self._wire.target.header)
        if len(told) != 1 or not told[0].strip():
            shown = ", ".join(map(repr, told)) or "none"
            yield self._finding(Concern.HEADER, sent, f"{self._wire.target.header} once, not empty", shown)

    def _depends_on_history(self, sent: Sent) -> bool:
        """A header beside a slug may name another session, and a tool result may answer no call: 400 for what is stored, rightly so."""
        body = sent.case.body if isinstance(sent.case.body, dict) else {}
        selects = any(body.get(name) is not None for name in _SELECTORS)
        said = body.get("messages") or body.get("input")
        results = isinstance(said, list) and any(_RESULTS & {item.get("role"), item.get("type")} for item in said)
        return results or (selects and bool(sent.case.headers.get(self._wire.target.header)))

    def _only_foreign(self, sent: Sent) -> bool:
        """Whether the body would be right without the fields of OpenAI's that only the model reads."""
        body, meta = sent.case.body, sent.case.meta
        elsewhere = [place for place in meta.components if place is not ParameterLocation.BODY]
        if sent.label not in BODIES or not isinstance(body, dict) or any(map(meta.is_negative_at, elsewhere)):
            return False
        own = {name: value for name, value in body.items() if name not in read_by_model(BODIES[sent.label])}
        return body_validator(sent.case.operation).is_valid(own)

    @staticmethod
    def _fails(sent: Sent, check: Any) -> bool:
        answer = sent.answer
        headers: dict[str, list[str]] = {}
        for name, value in answer.headers:
            headers.setdefault(name.lower(), []).append(value)
        response = Response(answer.status, headers, answer.text.encode(), sent.prepared, answer.seconds, verify=False)
        try:
            sent.case.validate_response(response, checks=[check])
        except FailureGroup:
            return True
        return False

    @staticmethod
    def _finding(concern: Concern, sent: Sent, expected: str, actual: str) -> Finding:
        label = sent.label if concern is not Concern.METHOD else f"{sent.request.method} {sent.case.operation.path}"
        return Finding(concern, label, expected, actual, sent.request, sent.answer)

"""Defects of ERROR: errors that say too little, or something else."""

from dataclasses import replace
from typing import Final

from continuity_server.defects.registry import defect
from continuity_server.rules import Rules
from continuity_server.rules.error import Case, Kind

# Three of them show under turns=reject, because a busy session is one of the cases.
_NAMES: Final = {400: "BadRequestError", 401: "AuthenticationError", 404: "NotFoundError"}


@defect("errors-without-code", "No error has a code.", under={"turns": "reject"})
class ErrorsWithoutCode(Rules):
    def error_kind(self, case: Case) -> Kind:
        return replace(super().error_kind(case), code=None)


@defect(
    "errors-with-numbers-as-codes",
    "The code of an error is its status once more, and its type the name of a class.",
    under={"turns": "reject"},
)
class ErrorsWithNumbersAsCodes(Rules):
    def error_kind(self, case: Case) -> Kind:
        status = super().error_kind(case).status
        return Kind(status, _NAMES.get(status, "InternalServerError"), str(status))


@defect("errors-of-one-type", "Every error is an invalid_request_error, whoever made it.", under={"turns": "reject"})
class ErrorsOfOneType(Rules):
    def error_kind(self, case: Case) -> Kind:
        return replace(super().error_kind(case), type="invalid_request_error")


@defect("errors-of-one-code", "Every mistake of a request has the same code, whatever it was.")
class ErrorsOfOneCode(Rules):
    def error_kind(self, case: Case) -> Kind:
        kind = super().error_kind(case)
        return replace(kind, code="invalid_request") if kind.type == "invalid_request_error" else kind


@defect("conflict-told-as-busy", "A header that contradicts the body gets the error of a busy session.")
class ConflictToldAsBusy(Rules):
    def error_kind(self, case: Case) -> Kind:
        return super().error_kind(Case.SESSION_BUSY if case is Case.SESSION_CONFLICT else case)


@defect("bad-request-is-500", "A field of the wrong type is a 500.", "litellm 1.106")
class BadRequestIs500(Rules):
    def error_kind(self, case: Case) -> Kind:
        return super().error_kind(Case.INTERNAL if case is Case.INVALID_REQUEST else case)


@defect("bad-json-is-500", "A body that is no JSON is a 500.")
class BadJsonIs500(Rules):
    def error_kind(self, case: Case) -> Kind:
        return super().error_kind(Case.INTERNAL if case is Case.INVALID_JSON else case)


@defect(
    "unknown-response-told-as-invalid",
    "A previous_response_id that cannot be found gets the error of a malformed field.",
)
class UnknownResponseToldAsInvalid(Rules):
    def error_kind(self, case: Case) -> Kind:
        return super().error_kind(Case.INVALID_REQUEST if case is Case.PREVIOUS_RESPONSE_NOT_FOUND else case)


@defect("not-found-of-any-kind", "An unknown response or session is told as a path that does not exist.")
class NotFoundOfAnyKind(Rules):
    def error_kind(self, case: Case) -> Kind:
        missing = {Case.RESPONSE_NOT_FOUND, Case.SESSION_NOT_FOUND}
        return super().error_kind(Case.NOT_FOUND if case in missing else case)


@defect(
    "busy-is-429",
    "A busy session is told as a model that asked to be left alone: 429.",
    under={"turns": "reject"},
)
class BusyIs429(Rules):
    def error_kind(self, case: Case) -> Kind:
        return super().error_kind(Case.RATE_LIMITED if case is Case.SESSION_BUSY else case)


@defect("too-large-is-400", "A body that is too large is 400, like any other mistake.")
class TooLargeIs400(Rules):
    def error_kind(self, case: Case) -> Kind:
        return super().error_kind(Case.INVALID_REQUEST if case is Case.TOO_LARGE else case)


@defect(
    "key-reuse-told-as-busy", "An Idempotency-Key that comes again with another body gets the error of a busy session."
)
class KeyReuseToldAsBusy(Rules):
    def error_kind(self, case: Case) -> Kind:
        return super().error_kind(Case.SESSION_BUSY if case is Case.KEY_REUSED else case)


@defect("model-failure-is-500", "A model that failed is told as a defect of the server: 500.")
class ModelFailureIs500(Rules):
    def error_kind(self, case: Case) -> Kind:
        return super().error_kind(Case.INTERNAL if case is Case.UPSTREAM else case)


@defect("rate-limit-is-502", "A model that asked to be left alone for a while is told as one that failed: 502.")
class RateLimitIs502(Rules):
    def error_kind(self, case: Case) -> Kind:
        return super().error_kind(Case.UPSTREAM if case is Case.RATE_LIMITED else case)


@defect("unstorable-is-500", "A store that cannot be used is told as a defect of the server: 500.")
class UnstorableIs500(Rules):
    def error_kind(self, case: Case) -> Kind:
        return super().error_kind(Case.INTERNAL if case is Case.HISTORY_UNAVAILABLE else case)

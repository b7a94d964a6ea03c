"""The first answer of a target: if no turn at all succeeds, there is nothing to examine, and the run ends with one line."""

from typing import Final

from continuity_conformance.core.errors import ContinuityError, UnreachableError, UsageError
from continuity_conformance.http.brief import short_text
from continuity_conformance.http.messages import Answer

_NO_ENDPOINT: Final = frozenset({404, 405, 501})
_CLIENT_ERROR: Final = 400
_SERVER_ERROR: Final = 500


def is_no_api(answer: Answer) -> bool:
    """Whether this is the answer of something else than an OpenAI-compatible server: a missing path, a web page or a redirect."""
    redirect = bool(answer.fields("Location")) and 300 <= answer.status < _CLIENT_ERROR  # noqa: PLR2004
    return answer.status in _NO_ENDPOINT or answer.content_type == "text/html" or redirect


def no_turn(url: str, path: str, answer: Answer) -> ContinuityError:
    """The error for a target whose turns all fail in this way."""
    short = short_text(answer)
    if is_no_api(answer):
        what = f"There is no OpenAI-compatible server at this address: POST {path} returns {short}."
        return UnreachableError(what, where=url, do="Give the base address: the part before /v1.")
    if _CLIENT_ERROR <= answer.status < _SERVER_ERROR:
        what = f"The target refuses a plain turn: {short}."
        return UsageError(
            what, where=url + path, do="Say in a profile what it needs, such as `model` or `body_fields`."
        )
    return UnreachableError(
        f"A plain turn fails: {short}.", where=url + path, do="Fix this first: nothing else can be tested."
    )

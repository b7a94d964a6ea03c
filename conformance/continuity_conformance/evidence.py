"""Evidence: exchanges as results.json keeps them, with secrets redacted and long bodies cut, and the text of a failure."""

import json
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from continuity_conformance.failure import Unmet
from continuity_conformance.stage import Exchange
from continuity_conformance.transcript import exchange_lines
from continuity_conformance.transport import Answer, Request
from continuity_spec import Requirement

_BODY_KEPT: Final = 4000
_WIDTH: Final = 100
_HIDDEN: Final = "***"
_SECRET_HEADERS: Final = frozenset(
    {"authorization", "cookie", "set-cookie", "proxy-authorization", "x-api-key", "x-conformance-token"}
)


@dataclass(frozen=True, slots=True)
class Redactor:
    """Takes the secrets of a run out of any text."""

    secrets: tuple[str, ...]

    def text(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, _HIDDEN)
        return text.encode("utf-8", "backslashreplace").decode()

    def headers(self, headers: Sequence[tuple[str, str]]) -> list[list[str]]:
        return [[name, _HIDDEN if name.lower() in _SECRET_HEADERS else self.body(value)] for name, value in headers]

    def body(self, text: str) -> str:
        text = self.text(text)
        return text if len(text) <= _BODY_KEPT else f"{text[:_BODY_KEPT]}… ({len(text) - _BODY_KEPT} more characters)"


def as_evidence(exchange: Exchange, redactor: Redactor) -> dict[str, object]:
    """One exchange as results.json keeps it."""
    return {
        "at": round(exchange.at, 3),
        "seconds": round(exchange.answer.seconds, 3),
        "step": exchange.number,
        "request": _request(exchange.request, redactor),
        "answer": _answer(exchange.answer, redactor) if exchange.answer.status else None,
        "error": redactor.text(exchange.answer.error),
        "seen": list(exchange.seen) if exchange.seen is not None else None,
    }


def _request(request: Request, redactor: Redactor) -> dict[str, object]:
    body = "" if request.body is None else json.dumps(request.body, ensure_ascii=False)
    return {
        "method": request.method,
        "url": redactor.text(request.url),
        "headers": redactor.headers(request.headers),
        "body": redactor.body(body),
    }


def _answer(answer: Answer, redactor: Redactor) -> dict[str, object]:
    return {"status": answer.status, "headers": redactor.headers(answer.headers), "body": redactor.body(answer.text)}


def failure_text(
    requirement: Requirement, scenario: str, unmet: Unmet, exchanges: Sequence[Mapping[str, Any]], target: str
) -> str:
    """A failure as people read it: requirement, step, expected, actual, the dialogue, why it matters, how to run it again."""
    head = f"{requirement.id} ({requirement.level}) is not met: {requirement.text}"
    why = f"Why it matters: {requirement.why}"
    lines = [
        *textwrap.wrap(head, _WIDTH, subsequent_indent="  "),
        *([f"  in      {scenario}"] if scenario else []),
        f"  step {unmet.number:2} {unmet.step}",
        f"          {unmet.expectation:9} expected  {unmet.expected}",
        f"          {'':9} actual    {unmet.actual}",
        "",
        *(f"  {line}" for exchange in exchanges for line in exchange_lines(exchange)),
        "",
        *textwrap.wrap(why, _WIDTH, initial_indent="  ", subsequent_indent="  "),
        f"  Run it again: continuity run {requirement.id} --target {target}",
        *_curl_lines(exchanges),
    ]
    return "\n".join(lines)


def _curl_lines(exchanges: Sequence[Mapping[str, Any]]) -> list[str]:
    """A curl where one request shows it; the key is taken from the environment."""
    if len(exchanges) != 1:
        return []
    request = exchanges[0]["request"]
    fields = [
        f'-H "{name}: Bearer $KEY"' if name.lower() == "authorization" else f"-H {shlex.quote(f'{name}: {value}')}"
        for name, value in request["headers"]
        if name.lower() != "user-agent"
    ]
    data = [f"-H 'Content-Type: application/json' --data {shlex.quote(request['body'])}"] if request["body"] else []
    command = " ".join(["curl -i -X", request["method"], *fields, *data, shlex.quote(request["url"])])
    return ["  One request shows it:", f"    {command}"]

"""What was said between the kit and the target, for people: one block an exchange.

Exchanges come redacted and cut; here they are only laid out. Knows their JSON form (`results.schema.json`) and nothing else.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from continuity_conformance.curl import pairs
from continuity_conformance.verdicts import Evidence, Result

_BODY: Final = 600
DULL: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "date",
        "host",
        "server",
        "transfer-encoding",
        "user-agent",
    }
)
"""Header fields that say nothing about continuity."""


def lines(result: Result) -> Iterator[str]:
    """Tell the requirement, its verdict, and each scenario as it went."""
    yield f"{result.id} ({result.level}): {result.verdict.spoken}, {result.seconds:.2f} s"
    yield f"  {result.text}"
    if result.reason:
        yield f"  {result.reason}"
    for each in result.evidence:
        yield ""
        yield from _scenario(each)


def _scenario(evidence: Evidence) -> Iterator[str]:
    name = " ".join(part for part in ("scenario", evidence.scenario, evidence.example) if part)
    yield f"  {name}: {evidence.outcome.spoken}{f' ({evidence.reason})' if evidence.reason else ''}"
    for exchange in evidence.exchanges:
        yield from (f"    {line}" for line in exchange_lines(exchange))


def exchange_lines(exchange: Mapping[str, object]) -> Iterator[str]:
    request, answer = _object(exchange.get("request")), exchange.get("answer")
    yield f"{_seconds(exchange.get('at'))}  → {request.get('method', '')} {request.get('url', '')}   {exchange.get('step') or ''}".rstrip()
    yield from _part(request)
    if isinstance(answer, Mapping):
        yield f"{_seconds(exchange.get('seconds'), '+')}  ← {answer.get('status')}"
        yield from _part(answer)
    if exchange.get("error"):
        yield f"          ← {exchange['error']}"
    if exchange.get("seen") is not None:
        yield f"          the model saw: {_brief(exchange['seen'])}"


def _part(message: Mapping[str, object]) -> Iterator[str]:
    for name, value in pairs(message.get("headers")):
        if name.lower() not in DULL:
            yield f"          {name}: {value}"
    body = message.get("body")
    if body is not None and body != "":
        yield f"          {_brief(body)}"


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _seconds(value: object, sign: str = "") -> str:
    return f"{sign}{value:.3f} s".rjust(9) if isinstance(value, int | float) else " " * 9


def _brief(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    line = " ".join(text.split())
    return line if len(line) <= _BODY else f"{line[:_BODY]}… ({len(text)} characters)"

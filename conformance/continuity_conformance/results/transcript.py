"""The transcript of a scenario as text: one block for each exchange and each intervention.

Both are JSON objects (`results.schema.json`), already redacted and cut. This module only lays them out.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from continuity_conformance.core.text import cut, without_middle
from continuity_conformance.core.verdicts import Evidence, Result
from continuity_conformance.http.curl import pairs

_BODY: Final = 600
_STREAM: Final = 1200
_TRACED_FIRST: Final = 3
_TRACED_LAST: Final = 7
_TRACED: Final = 100
_NUMBER: Final = re.compile(r"\d+")
_SECURITY: Final = frozenset(
    {
        "content-security-policy",
        "content-security-policy-report-only",
        "cross-origin-embedder-policy",
        "cross-origin-opener-policy",
        "cross-origin-resource-policy",
        "origin-agent-cluster",
        "permissions-policy",
        "referrer-policy",
        "strict-transport-security",
        "x-content-type-options",
        "x-dns-prefetch-control",
        "x-download-options",
        "x-frame-options",
        "x-permitted-cross-domain-policies",
        "x-xss-protection",
    }
)
_IRRELEVANT: Final = _SECURITY | {
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
"""Header fields of every answer that are irrelevant to continuity."""


def lines(result: Result, *, whole: bool = True) -> Iterator[str]:
    """The requirement, its verdict, and its scenarios. `whole`: with the transcript of each; else failures in full, and one line for each other scenario."""
    yield f"{result.id} ({result.level}): {result.verdict.spoken}, {result.seconds:.2f} s"
    yield f"  {result.text}"
    if result.reason:
        yield f"  {result.reason}"
    for each in result.evidence:
        if whole:
            yield from ("", *_scenario(each))
        elif each.failure:
            yield from ("", _title(each), "", *(f"  {line}" for line in each.failure.splitlines()))
        else:
            yield _title(each)
    if not whole and any(each.exchanges and not each.failure for each in result.evidence):
        yield "  (-v shows the whole transcript of every scenario)"


def _title(evidence: Evidence) -> str:
    name = " ".join(part for part in ("scenario", evidence.scenario, evidence.example) if part)
    return f"  {name}: {evidence.outcome.spoken}{f' ({evidence.reason})' if evidence.reason else ''}"


def _scenario(evidence: Evidence) -> Iterator[str]:
    yield _title(evidence)
    for entry in in_order(evidence.exchanges, evidence.interventions or ()):
        yield from (f"    {line}" for line in entry_lines(entry, evidence.expected))


def trace(exchanges: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line for each exchange; of many, the first and the last ones."""
    left_out = len(exchanges) - _TRACED_FIRST - _TRACED_LAST
    if left_out <= 0:
        return [_trace_line(each) for each in exchanges]
    first, last = exchanges[:_TRACED_FIRST], exchanges[-_TRACED_LAST:]
    return [*map(_trace_line, first), f"… {left_out} more", *map(_trace_line, last)]


def _trace_line(exchange: Mapping[str, Any]) -> str:
    request, answer, seen = exchange["request"], exchange["answer"], exchange["seen"]
    path = urlsplit(request["url"]).path
    saw = f"; the model saw {cut(', '.join(map(str, seen)), _TRACED)}" if seen is not None else ""
    status = answer["status"] if answer else exchange["error"]
    return f"{exchange['step']}  {exchange.get('principal') or 'client'}: {request['method']} {path} → {status}{saw}"


def in_order(
    exchanges: Iterable[Mapping[str, Any]], interventions: Iterable[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Exchanges and interventions by the time when they began, then by the number of their step."""
    return sorted((*exchanges, *interventions), key=lambda entry: (entry["at"], step_key(entry["step"])))


def step_key(number: str) -> tuple[int, ...]:
    """A sort key for the number of a step: 2.10 comes after 2.9."""
    return tuple(int(part) for part in _NUMBER.findall(number))


def entry_lines(entry: Mapping[str, Any], expected: str) -> Iterator[str]:
    """The lines of an exchange or an intervention. `expected`: the expectation that was not met; headers that it names are shown."""
    yield from _exchange(entry, expected) if "request" in entry else _intervention(entry)


def _intervention(entry: Mapping[str, Any]) -> Iterator[str]:
    yield f"{_seconds(entry['at'])}  ◆ {_brief(entry['does'])}   {entry['step']}".rstrip()
    yield from (f"          {_brief(entry[part])}" for part in ("how", "proof") if entry[part])


def _exchange(exchange: Mapping[str, Any], expected: str) -> Iterator[str]:
    request, answer = exchange["request"], exchange["answer"]
    yield f"{_seconds(exchange['at'])}  → {request['method']} {request['url']}   {exchange['step']}".rstrip()
    yield from _part(request, expected)
    if answer:
        yield f"{_seconds(exchange['seconds'], '+')}  ← {answer['status']}"
        yield from _part(answer, expected)
    if exchange["error"]:
        yield f"{' ' * 9 if answer else _seconds(exchange['seconds'], '+')}  ← {exchange['error']}"
    if exchange["seen"] is not None:
        yield f"          {_seen_by(exchange)}: {_brief(exchange['seen'])}"


def _seen_by(exchange: Mapping[str, Any]) -> str:
    earlier = exchange.get("replays")
    return f"the answer of an earlier call of the model (step {earlier}), which saw" if earlier else "the model saw"


def _part(message: Mapping[str, Any], expected: str) -> Iterator[str]:
    yield from (f"          {name}: {value}" for name, value in relevant_headers(message["headers"], expected))
    body = message["body"]
    if body is not None and body != "":
        yield f"          {without_middle(_line(body), _STREAM) if is_stream(message) else _brief(body)}"


def relevant_headers(headers: object, expected: str) -> list[tuple[str, str]]:
    """The header fields that matter for continuity, or that the expectation names."""
    wanted = expected.lower()
    return [pair for pair in pairs(headers) if (name := pair[0].lower()) not in _IRRELEVANT or f"{name}:" in wanted]


def is_stream(message: Mapping[str, Any]) -> bool:
    types = [value for name, value in pairs(message["headers"]) if name.lower() == "content-type"]
    return any(value.lower().startswith("text/event-stream") for value in types)


def _seconds(value: float, sign: str = "") -> str:
    return f"{sign}{value:.3f} s".rjust(9)


def _line(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return " ".join(text.split())


def _brief(value: object) -> str:
    line = _line(value)
    return line if len(line) <= _BODY else f"{line[:_BODY]}… ({len(line)} characters)"

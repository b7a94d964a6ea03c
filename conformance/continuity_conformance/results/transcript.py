"""What went on between the kit and the target, for people: one block an exchange, one an intervention.

They come redacted and cut; here they are only laid out. Knows their JSON form (`results.schema.json`) and nothing else.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from continuity_conformance.core.text import without_middle
from continuity_conformance.core.verdicts import Evidence, Result
from continuity_conformance.http.curl import pairs

_BODY: Final = 600
_STREAM: Final = 1200
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
_DULL: Final = _SECURITY | {
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
"""Header fields that say nothing about continuity, and stand on every answer."""


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
    for told in in_order(evidence.exchanges, evidence.interventions or ()):
        yield from (f"    {line}" for line in told_lines(told, evidence.expected))


def in_order(
    exchanges: Iterable[Mapping[str, Any]], interventions: Iterable[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Exchanges and interventions as they began; in the same instant, as their steps are numbered."""
    return sorted((*exchanges, *interventions), key=lambda told: (told["at"], in_steps(told["step"])))


def in_steps(number: str) -> tuple[int, ...]:
    """The number of a step, as something that can be compared: 2.10 comes after 2.9."""
    return tuple(int(part) for part in _NUMBER.findall(number))


def told_lines(told: Mapping[str, Any], about: str) -> Iterator[str]:
    """An exchange or an intervention. `about`: what was expected and not met."""
    yield from _exchange(told, about) if "request" in told else _intervention(told)


def _intervention(told: Mapping[str, Any]) -> Iterator[str]:
    yield f"{_seconds(told['at'])}  ◆ {_brief(told['does'])}   {told['step']}".rstrip()
    yield from (f"          {_brief(told[part])}" for part in ("how", "proof") if told[part])


def _exchange(exchange: Mapping[str, Any], about: str) -> Iterator[str]:
    request, answer = exchange["request"], exchange["answer"]
    yield f"{_seconds(exchange['at'])}  → {request['method']} {request['url']}   {exchange['step']}".rstrip()
    yield from _part(request, about)
    if answer:
        yield f"{_seconds(exchange['seconds'], '+')}  ← {answer['status']}"
        yield from _part(answer, about)
    if exchange["error"]:
        yield f"{' ' * 9 if answer else _seconds(exchange['seconds'], '+')}  ← {exchange['error']}"
    if exchange["seen"] is not None:
        yield f"          {_who_saw(exchange)}: {_brief(exchange['seen'])}"


def _who_saw(exchange: Mapping[str, Any]) -> str:
    earlier = exchange.get("replays")
    return f"the answer of an earlier call of the model (step {earlier}), which saw" if earlier else "the model saw"


def _part(message: Mapping[str, Any], about: str) -> Iterator[str]:
    yield from (f"          {name}: {value}" for name, value in telling(message["headers"], about))
    body = message["body"]
    if body is not None and body != "":
        yield f"          {without_middle(_line(body), _STREAM) if is_stream(message) else _brief(body)}"


def telling(headers: object, about: str) -> list[tuple[str, str]]:
    """The header fields that say something about continuity, or that the expectation is about."""
    wanted = about.lower()
    return [pair for pair in pairs(headers) if (name := pair[0].lower()) not in _DULL or f"{name}:" in wanted]


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

"""A profile to start from: what the doctor found, in the words of profiles, and what it could not find out as comments.

Secrets are in it by the names of their environment variables alone.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from continuity_conformance.core.errors import UsageError
from continuity_conformance.doctor.findings import Findings
from continuity_conformance.run.applicability import Prospect
from continuity_conformance.target.profile import Profile

_PLAIN: Final = re.compile(r"[A-Za-z0-9_./$][A-Za-z0-9_./$-]*")
_WORDS_OF_YAML: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


@dataclass(frozen=True, slots=True)
class Given:
    """What the user gave, as it was given: `$NAME` for whatever comes from the environment."""

    principals: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


def write(path: Path, text: str) -> None:
    """Write a new file; one that is there already stays as it is."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(
            "this file is there already, and what people wrote in it would be lost.",
            where=str(path),
            do="Name another.",
        ) from None
    except OSError as trouble:
        raise UsageError(f"it cannot be written ({trouble.strerror}).", where=str(path), do="Name another.") from None


def text(findings: Findings, profile: Profile, given: Given, path: Path) -> str:
    return "".join(f"{line}\n" for line in _lines(findings, profile, given, path))


def _lines(findings: Findings, profile: Profile, given: Given, path: Path) -> Iterator[str]:
    target = findings.target
    assert target is not None, "a server that was looked at to the end has a target"
    yield "# A profile to start from, as `continuity doctor` found the server. Use it:"
    yield f"#   continuity check {findings.url} --profile {path.name}"
    yield "# Every key is in docs/how-to/profile.md. Without `process:` the server is one that is running already."
    yield f"name: {_scalar(profile.name)}"
    if findings.header_from:
        yield f"header: {_scalar(target.header)}  # {findings.header_from}"
    yield f"model: {_scalar(profile.model)}"
    yield from _access(profile, given, path)
    yield from _claims(findings, profile)
    yield f"limits: {{turn_seconds: {_patience(findings, profile)}}}  # parallel, at_once: what it may be asked to bear"
    yield from [f"probe: {_scalar(profile.probe)}"] if profile.probe else _missing_probe(findings)
    yield "# process: {start: [my-server, --port, '{port}', --model, '{probe}'], ready: /health}  # restarts and kills"
    yield "# controls: {token: $CONTROL_TOKEN}  # of the control API, or evict: {http: 'POST /test/evict/{response}'}"


def _access(profile: Profile, given: Given, path: Path) -> Iterator[str]:
    if profile.ca:
        yield f"ca: {_scalar(os.path.relpath(profile.ca, path.resolve().parent))}"
    if not profile.key_field.usual:
        yield f"auth: {json.dumps(f'{profile.key_field.name}: {profile.key_field.value}')}"
    if given.principals:
        yield f"principals: {_flow(given.principals)}"
    if "bob" not in given.principals:
        yield "# principals: {alice: $FIRST_KEY, bob: $SECOND_KEY}  # a second key: who may see whose sessions"
    if given.headers:
        yield f"headers: {_flow(given.headers)}"


def _claims(findings: Findings, profile: Profile) -> Iterator[str]:
    target = findings.target
    assert target is not None
    options = ", ".join(f"{name}: {value}" for name, value in target.options.items() if name != "tells")
    if profile.options:
        yield f"options: {_flow(profile.options)}"
    said = "as its capabilities say" if findings.declared else "the usual ones, which nobody has declared"
    yield f"# options: {{{options}}}  # {said}"
    if findings.declared:
        yield f"# offers: [{', '.join(sorted(target.offers))}]  # as its capabilities say"
    else:
        yield f"offers: [{', '.join(sorted(target.offers))}]"
    if not profile.documented_sessions:
        field = f", field: {_scalar(profile.session_field)}" if profile.session_field else ""
        fields = f", fields: {_flow(profile.session_fields)}" if profile.session_fields else ""
        yield f"sessions: {{path: {_scalar(profile.sessions)}{field}{fields}}}"
    if not findings.declared and not profile.principals:
        yield "# single_user: true  # it asks for no key: is it for one person, who alone can reach it?"


def _missing_probe(findings: Findings) -> Iterator[str]:
    untold = sum(prospect is Prospect.REFUTABLE for _, prospect, _ in findings.prospects)
    yield f"# probe: http://127.0.0.1:9100/v1  # `continuity model --port 9100` as its model: {untold} requirements more can pass"


def _patience(findings: Findings, profile: Profile) -> int:
    """Three times as long as the slowest turn took, which was the first one, of a quiet server."""
    return max(round(profile.limits.turn_seconds), round(findings.slowest * 3))


def _flow(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{_scalar(name)}: {_scalar(value)}" for name, value in values.items()) + "}"


def _scalar(value: str) -> str:
    """Plain where that is plain to everybody, else as JSON, which YAML reads too."""
    plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS_OF_YAML and not value[0].isdigit()
    return value if plain else json.dumps(value)

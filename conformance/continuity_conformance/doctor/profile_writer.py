"""Write a first profile: what the doctor found, with comments for what it could not find out.

For secrets, the profile contains only the names of their environment variables.
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
_YAML_KEYWORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


@dataclass(frozen=True, slots=True)
class AccessOptions:
    """The keys and header fields of the command line, as the user wrote them: `$NAME` for a value from the environment."""

    principals: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


def write(path: Path, text: str) -> None:
    """Write a new file. Raises UsageError if it exists already."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(
            "this file exists already; the doctor does not overwrite it.", where=str(path), do="Give another name."
        ) from None
    except OSError as error:
        raise UsageError(
            f"the file cannot be written ({error.strerror}).", where=str(path), do="Give another name."
        ) from None


def text(findings: Findings, profile: Profile, access: AccessOptions, path: Path) -> str:
    return "".join(f"{line}\n" for line in _lines(findings, profile, access, path))


def _lines(findings: Findings, profile: Profile, access: AccessOptions, path: Path) -> Iterator[str]:
    target = findings.target
    assert target is not None, "a complete survey sets the target"
    yield "# A first profile, written by `continuity doctor`. Use it:"
    yield f"#   continuity check {findings.url} --profile {path.name}"
    yield "# docs/how-to/profile.md explains every key. Without `process:`, the server must already be running."
    yield f"name: {_scalar(profile.name)}"
    if profile.body:
        yield f"body: {_scalar(profile.body)}  # {findings.header_from or 'from the profile'}"
    elif findings.header_from:
        yield f"header: {_scalar(target.header)}  # {findings.header_from}"
    if findings.ids:
        yield f"ids: {_scalar(findings.ids)}  # it refuses others"
    if profile.chat == "none":
        yield "chat: none  # it has no /v1/chat/completions"
    if profile.slugs != "named":
        yield f"slugs: {profile.slugs}  # how it takes `conversation`"
    yield f"model: {_scalar(profile.model)}"
    yield from _access(profile, access, path)
    yield from _claims(findings, profile)
    yield f"limits: {{turn_seconds: {_turn_seconds(findings, profile)}}}  # parallel, at_once: how much load it gets"
    yield from [f"probe: {_scalar(profile.probe)}"] if profile.probe else _missing_probe(findings)
    yield "# process: {start: [my-server, --port, '{port}', --model, '{probe}'], ready: /health}  # tests restarts and kills"
    yield "# controls: {token: $CONTROL_TOKEN}  # the control API; or evict: {http: 'POST /test/evict/{response}'}"


def _access(profile: Profile, access: AccessOptions, path: Path) -> Iterator[str]:
    if profile.ca:
        yield f"ca: {_scalar(os.path.relpath(profile.ca, path.resolve().parent))}"
    if not profile.key_field.usual:
        yield f"auth: {json.dumps(f'{profile.key_field.name}: {profile.key_field.value}')}"
    if access.principals:
        yield f"principals: {_flow(access.principals)}"
    if "bob" not in access.principals:
        yield "# principals: {alice: $FIRST_KEY, bob: $SECOND_KEY}  # a second key tests who can see whose sessions"
    if access.headers:
        yield f"headers: {_flow(access.headers)}"


def _claims(findings: Findings, profile: Profile) -> Iterator[str]:
    target = findings.target
    assert target is not None
    options = ", ".join(f"{name}: {value}" for name, value in target.options.items() if name != "tells")
    if profile.options:
        yield f"options: {_flow(profile.options)}"
    source = "from its capabilities" if findings.declared else "the defaults; the server declares none"
    yield f"# options: {{{options}}}  # {source}"
    if findings.declared:
        yield f"# offers: [{', '.join(sorted(target.offers - {'chat'}))}]  # from its capabilities"
    else:
        yield f"offers: [{', '.join(sorted(target.offers - {'chat'}))}]"
    if not profile.documented_sessions:
        field = f", field: {_scalar(profile.session_field)}" if profile.session_field else ""
        fields = f", fields: {_flow(profile.session_fields)}" if profile.session_fields else ""
        yield f"sessions: {{path: {_scalar(profile.sessions)}{field}{fields}}}"
    if not findings.declared and not profile.principals:
        yield "# single_user: true  # it requires no key: add this if only one person can reach it"


def _missing_probe(findings: Findings) -> Iterator[str]:
    more = sum(prospect is Prospect.REFUTABLE for _, prospect, _ in findings.prospects)
    yield f"# probe: http://127.0.0.1:9100/v1  # with `continuity model --port 9100` as its model, {more} more requirements can pass"


def _turn_seconds(findings: Findings, profile: Profile) -> int:
    """At least three times the slowest turn, because the doctor sends one turn at a time and a run sends many."""
    return max(round(profile.limits.turn_seconds), round(findings.slowest_seconds * 3))


def _flow(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{_scalar(name)}: {_scalar(value)}" for name, value in values.items()) + "}"


def _scalar(value: str) -> str:
    """A YAML scalar: plain if it is simple text, else quoted as JSON, which YAML reads too."""
    plain = _PLAIN.fullmatch(value) and value.lower() not in _YAML_KEYWORDS and not value[0].isdigit()
    return value if plain else json.dumps(value)

"""Read a profile from a YAML file (`--continuity-profile`).

The JSON Schema `profile.schema.json` decides and explains; msgspec then decodes what the schema has accepted. Most fields of the file are fields of `Profile`,
with the same name and form. The structs below are the sections that `Profile` holds in another form.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from continuity_conformance.core.errors import UsageError
from continuity_conformance.http.auth import KeyField
from continuity_conformance.http.tls import trust
from continuity_conformance.target.control_context import HttpControl
from continuity_conformance.target.profile import DEFAULT_SESSIONS, Filling, Process, Profile, ToolCall
from continuity_spec import load_checked
from continuity_spec.errors import SchemaViolationError


class _Control(Struct, frozen=True):
    """A request that makes something happen; for `compress` also turns that fill the context."""

    http: str = ""
    turns: int = 0
    characters: int = 0


class _Sessions(Struct, frozen=True):
    path: str = DEFAULT_SESSIONS
    field: str = ""
    fields: Mapping[str, str] = {}


class _Tools(Struct, frozen=True):
    write: ToolCall | None = None
    read: ToolCall | None = None


class _Sections(Struct, frozen=True):
    controls: Mapping[str, str | _Control] = {}
    """`token` is a text; every other entry is a control."""
    sessions: _Sessions = _Sessions()
    tools: _Tools = _Tools()
    auth: str = ""


def load_profile(path: Path) -> Profile:
    """Read and check a profile. Raises SpecError for the file, UsageError for a variable that is not in the environment."""
    data: Any = load_checked(path, "profile")
    try:
        return _profile(data, path)
    except msgspec.ValidationError as error:
        raise SchemaViolationError(str(path), str(error), "Write the value in the form that is expected.") from None


def _profile(data: Mapping[str, Any], path: Path) -> Profile:
    sections = msgspec.convert(data, _Sections)
    same_form = {name: value for name, value in data.items() if name not in _Sections.__struct_fields__}
    profile = msgspec.convert({"name": path.stem, **same_form, **_headers(data)}, Profile)
    controls = {name: each for name, each in sections.controls.items() if isinstance(each, _Control)}
    compress = controls.get("compress", _Control())
    _check_expression(profile.summary, path)
    return replace(
        profile,
        principals=_filled_in(profile.principals, path),
        process=_process(profile.process, path) if profile.process else None,
        previous=_process(profile.previous, path) if profile.previous else None,
        token=_from_environment(str(sections.controls.get("token", "")), path),
        controls={name: HttpControl(each.http) for name, each in controls.items() if each.http},
        filling=Filling(compress.turns, compress.characters) if compress.turns else None,
        sessions=sections.sessions.path,
        session_field=sections.sessions.field,
        session_fields=sections.sessions.fields,
        headers=_filled_in(profile.headers, path),
        key_field=KeyField.read(sections.auth) if sections.auth else KeyField(),
        ca=_certificates(profile.ca, path) if profile.ca else "",
        writes=sections.tools.write,
        reads=sections.tools.read,
    )


def _check_expression(summary: str, path: Path) -> None:
    try:
        re.compile(summary)
    except re.error as error:
        raise UsageError(
            f"`summary` is no regular expression: {error}.", where=str(path), do="Put \\ before ( ) [ ] { } . * + ? |."
        ) from None


def _headers(data: Mapping[str, Any]) -> dict[str, Any]:
    """The continuity header, and those that name the session where it is absent."""
    named = data.get("header", "")
    first, *others = named if isinstance(named, list) else [named]
    return {"header": first, "other_headers": others}


def _process(process: Process, path: Path) -> Process:
    env = _filled_in(process.env, path)
    secrets = tuple(env[name] for name, value in process.env.items() if value.startswith("$"))
    start, alone, keyless = (_in_folder(words, path) for words in (process.start, process.alone, process.keyless))
    return replace(process, env=env, secrets=secrets, start=start, alone=alone, keyless=keyless)


def _in_folder(words: tuple[str, ...], path: Path) -> tuple[str, ...]:
    """Fill in `{profile}`, the folder of the profile: the target itself runs in a folder of its own."""
    return tuple(word.replace("{profile}", str(path.parent.resolve())) for word in words)


def _certificates(name: str, path: Path) -> str:
    """The certificate file, checked. A relative name is relative to the profile's folder."""
    file = str(path.parent / Path(name).expanduser())
    trust(file)
    return file


def _filled_in(values: Mapping[str, str], path: Path) -> dict[str, str]:
    return {name: _from_environment(value, path) for name, value in values.items()}


def _from_environment(value: str, path: Path) -> str:
    """The value of the variable that `$NAME` names; any other text as it is."""
    if not value.startswith("$"):
        return value
    if value[1:] not in os.environ:
        raise UsageError(f"{value} is not set in the environment.", where=str(path), do=f"Run: export {value[1:]}=…")
    return os.environ[value[1:]]

"""Read a profile from a YAML file (`--continuity-profile`).

The JSON Schema `profile.schema.json` decides and explains; msgspec then decodes what the schema has accepted. Most fields of the file are fields of `Profile`,
with the same name and form. The structs below are the sections that `Profile` holds in another form.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from continuity_conformance.core.errors import UsageError
from continuity_conformance.http.messages import KeyField
from continuity_conformance.http.tls import trust
from continuity_conformance.target.control_context import HttpControl
from continuity_conformance.target.profile import DEFAULT_ORIGIN, DEFAULT_SESSIONS, Filling, Process, Profile, ToolCall
from continuity_conformance.target.profile_text import ProfileText
from continuity_spec import load_checked_document
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


class _Principal(Struct, frozen=True):
    """Who a principal is: a key, header fields, or both."""

    key: str = ""
    headers: Mapping[str, str] = {}


class _Sections(Struct, frozen=True):
    controls: Mapping[str, str | _Control] = {}
    """`token` is a text; every other entry is a control."""
    sessions: _Sessions = _Sessions()
    tools: _Tools = _Tools()
    auth: str = ""
    ids: str = ""
    principals: Mapping[str, str | _Principal] = {}


_COMMANDS: Final = ("start", "alone", "keyless", "single_user")
_WITH_VARIABLES: Final = ("principals", "headers", "body_fields", "conversation_fields")
"""The sections in which `$NAME` comes from the environment; beside them `env` of a process and the token of the controls."""


def load_profile(path: Path) -> Profile:
    """Read and check a profile. Raises SpecError for the file, UsageError for a variable that is not in the environment."""
    document = load_checked_document(path, "profile")
    data: Any = document.data
    try:
        return _profile(data, path, ProfileText(document))
    except msgspec.ValidationError as error:
        raise SchemaViolationError(str(path), str(error), "Write the value in the form that is expected.") from None


def _profile(data: Mapping[str, Any], path: Path, text: ProfileText) -> Profile:
    text.check(data)
    filled = {name: text.filled(data[name], (name,)) for name in _WITH_VARIABLES if name in data}
    sections = msgspec.convert({**data, **filled}, _Sections)
    same_form = {name: value for name, value in data.items() if name not in _Sections.__struct_fields__}
    processes = {name: _process(data[name], (name,), path, text) for name in ("process", "previous") if name in data}
    given = {"name": path.stem, **same_form, **filled, **_headers(data), **_principals(sections), **_origin(data)}
    profile = msgspec.convert({name: each for name, each in given.items() if name not in processes}, Profile)
    controls = {name: each for name, each in sections.controls.items() if isinstance(each, _Control)}
    compress = controls.get("compress", _Control())
    _check_expression(profile.summary, path)
    return replace(
        profile,
        process=processes.get("process"),
        previous=processes.get("previous"),
        token=text.filled(str(sections.controls.get("token", "")), ("controls", "token")),
        controls={name: HttpControl(each.http) for name, each in controls.items() if each.http},
        filling=Filling(compress.turns, compress.characters) if compress.turns else None,
        sessions=sections.sessions.path,
        session_field=sections.sessions.field,
        session_fields=sections.sessions.fields,
        ids=text.ids(sections.ids),
        key_field=KeyField.read(sections.auth) if sections.auth else KeyField(),
        ca=_certificates(profile.ca, path) if profile.ca else "",
        writes=sections.tools.write,
        reads=sections.tools.read,
        hidden=tuple(text.used),
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


def _principals(sections: _Sections) -> dict[str, Any]:
    """The keys and the header fields of the principals."""
    everyone = {
        name: each if isinstance(each, _Principal) else _Principal(each) for name, each in sections.principals.items()
    }
    return {
        "principals": {name: each.key for name, each in everyone.items() if each.key},
        "identities": {name: each.headers for name, each in everyone.items() if each.headers},
    }


def _origin(data: Mapping[str, Any]) -> dict[str, Any]:
    """The origin that the target allows. `*` says that it allows all of them, so any will do."""
    given = data.get("origin", DEFAULT_ORIGIN)
    return {"origin": DEFAULT_ORIGIN, "any_origin": True} if given == "*" else {"origin": given}


def _process(data: Mapping[str, Any], at: tuple[str, ...], path: Path, text: ProfileText) -> Process:
    """How to start the target."""
    before = len(text.used)
    env = text.filled(data.get("env", {}), (*at, "env"))
    without_keys = [_without_keys(data, name, at, text) for name in ("keyless", "single_user")]
    process = msgspec.convert({**data, "env": env, **without_keys[0], **without_keys[1]}, Process)
    commands: dict[str, Any] = {name: _in_folder(getattr(process, name), path) for name in _COMMANDS}
    return replace(process, base=process.base.removesuffix("/v1"), secrets=tuple(text.used[before:]), **commands)


def _without_keys(data: Mapping[str, Any], name: str, at: tuple[str, ...], text: ProfileText) -> dict[str, Any]:
    """How to start the target without a key: a command, or a command with environment variables of its own."""
    given = data.get(name, [])
    own = given if isinstance(given, Mapping) else {"start": given}
    env = text.filled(own["env"], (*at, name, "env")) if "env" in own else None
    return {name: own["start"], f"{name}_env": env}


def _in_folder(words: tuple[str, ...], path: Path) -> tuple[str, ...]:
    """Fill in `{profile}`, the folder of the profile: the target itself runs in a folder of its own."""
    return tuple(word.replace("{profile}", str(path.parent.resolve())) for word in words)


def _certificates(name: str, path: Path) -> str:
    """The certificate file, checked. A relative name is relative to the profile's folder."""
    file = str(path.parent / Path(name).expanduser())
    trust(file)
    return file

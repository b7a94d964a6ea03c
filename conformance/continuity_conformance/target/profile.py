"""The profile: what a URL alone cannot tell about a target.

A profile comes from a file (`--continuity-profile`), from a plugin (`--target NAME`), or is the default for a bare URL. Keys are given as
`$NAME` and taken from the environment; they are in no report.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from continuity_conformance.core.errors import UsageError
from continuity_conformance.http.auth import KeyField
from continuity_conformance.http.messages import USER_AGENT, dig
from continuity_conformance.http.tls import trust
from continuity_conformance.target.control_context import Control, HttpControl
from continuity_spec import load_checked

DEFAULT_HEADER: Final = "X-Hermes-Session-Id"
DEFAULT_ORIGIN: Final = "http://continuity.test"
DEFAULT_SESSIONS: Final = "/v1/sessions"
DEFAULT_OPTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "derivation": "content-v1",
        "compaction": "rotate",
        "echo": "tip",
        "degraded": "answer",
        "turns": "serialize",
        "environment": "shared",
        "tells": "header",
    }
)


Slugs = Literal["named", "made", "none"]
"""How a target takes `conversation`: any text that the client names, only what POST /v1/conversations made, or not at all."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the target is asked to bear."""

    parallel: int = 16
    at_once: int = 20
    turn_seconds: float = 20.0
    responses: int = 0  # how many the target's cache holds; 0: not known
    body: int = 0  # how many bytes of a request the target takes; 0: not known
    ids: int = 1000  # how many minted ids it is asked for
    servers: int = 1  # how many processes of the target calm scenarios are spread over, where the kit starts it
    examples: int = 0  # how many generated examples, where nobody asks for a number; 0: as many as of any target
    disturbed: int = 2  # how many processes play disturbing scenarios at a time, each alone


@dataclass(frozen=True, slots=True)
class Process:
    """How to start the target.

    `{port}`, `{folder}` and `{probe}` stand for a free port, a folder of its own, and the probe model's URL: in the command, in `env` and in `files`.
    """

    start: tuple[str, ...]
    ready: str = "/health"
    env: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 30.0
    alone: tuple[str, ...] = ()
    """More arguments for a server that plays one scenario at a time, such as a small cache that is quickly filled."""
    keyless: tuple[str, ...] = ()
    """The command that starts it for several people without any key configured."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What is written into the folder before the first start: text by name."""
    isolated: bool = False
    """Nothing of the user's environment but PATH and the language: home and temporary files in the folder, and no way out but loopback."""
    warm_up: float = 0.0
    """How many seconds a first turn may take that must come back before the target is ready; 0: no such turn."""
    stop_seconds: float = 10.0
    """How long it may take to end before it is killed."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values of `env` that were taken from the kit's own environment."""


@dataclass(frozen=True, slots=True)
class Filling:
    """Compression by filling the context: so many turns of so many characters, the last of which makes the target compress."""

    turns: int
    characters: int


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool of the target, and its arguments as JSON with `{name}` and `{content}` in it."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Profile:
    """A target as the kit knows it. Options and offers that nobody states are taken from its capabilities."""

    name: str
    header: str = ""
    body: str = ""
    model: str = "default"
    slugs: Slugs = "named"
    principals: Mapping[str, str] = field(default_factory=dict, repr=False)
    options: Mapping[str, str] = field(default_factory=dict)
    offers: frozenset[str] | None = None
    single_user: bool = False
    limits: Limits = Limits()
    process: Process | None = None
    legacy: str = ""
    token: str = field(default="", repr=False)
    controls: Mapping[str, Control] = field(default_factory=dict)
    filling: Filling | None = None
    sessions: str = DEFAULT_SESSIONS
    """The path of its sessions, where the target has them elsewhere than the contract says."""
    session_field: str = ""
    """The field of the answer that a session stands in, where it is not the answer itself."""
    session_fields: Mapping[str, str] = field(default_factory=dict)
    """What the target calls the fields of a session, by their names in the contract, where these differ."""
    probe: str = ""
    origin: str = DEFAULT_ORIGIN
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    key_field: KeyField = field(default_factory=KeyField)
    ca: str = ""
    """A file of certificates to trust, where the target's own was signed by nobody that the system knows."""
    summary: str = "summar"
    writes: ToolCall | None = None
    reads: ToolCall | None = None

    def path(self, path: str) -> str:
        """A path of the contract as this target has it: its sessions may be elsewhere."""
        return _moved(path, DEFAULT_SESSIONS, self.sessions)

    def documented_path(self, path: str) -> str:
        """A path of this target as the contract has it."""
        return _moved(path, self.sessions, DEFAULT_SESSIONS)

    @property
    def documented_sessions(self) -> bool:
        """Whether sessions are where the contract has them, and in its form."""
        return (self.sessions, self.session_field, dict(self.session_fields)) == (DEFAULT_SESSIONS, "", {})

    def session(self, body: object) -> object:
        """A session that this target shows, in the form of the contract: out of its field, which says that it is one, and with the contract's names."""
        shown = dig(body, self.session_field) if self.session_field else body
        if not isinstance(shown, Mapping):
            return shown
        renamed = {ours: shown[theirs] for ours, theirs in self.session_fields.items() if theirs in shown}
        return {**({"object": "session"} if self.session_field else {}), **shown, **renamed}

    def request_headers(self, key: str) -> list[tuple[str, str]]:
        """The header fields of every request: the kit's User-Agent, the profile's own headers, and the key where there is one."""
        fields = [("User-Agent", USER_AGENT), *self.headers.items()]
        return [*fields, self.key_field.filled(key)] if key else fields

    @property
    def secrets(self) -> tuple[str, ...]:
        """Everything that must never appear in a report."""
        environment = self.process.secrets if self.process is not None else ()
        configured = (*self.principals.values(), self.token, *self.headers.values(), *environment)
        return tuple(secret for secret in configured if secret)


def _moved(path: str, place: str, other: str) -> str:
    rest = path.removeprefix(place)
    return other + rest if rest != path and rest[:1] in {"", "/", "?"} else path


def load_profile(path: Path) -> Profile:
    """The profile in a file, checked. Raises SpecError for the file, UsageError for a key that is not in the environment."""
    data: Any = load_checked(path, "profile")
    limits = Limits(**data.get("limits", {}))
    controls = data.get("controls", {})
    return Profile(
        name=data.get("name", path.stem),
        header=data.get("header", ""),
        body=data.get("body", ""),
        model=data.get("model", "default"),
        slugs=data.get("slugs", "named"),
        principals={name: _from_environment(key, path) for name, key in data.get("principals", {}).items()},
        options=data.get("options", {}),
        offers=frozenset(data["offers"]) if "offers" in data else None,
        single_user=data.get("single_user", False),
        limits=limits,
        process=_process(data["process"], path) if "process" in data else None,
        token=_from_environment(controls.get("token", ""), path),
        controls={
            name: HttpControl(how["http"])
            for name, how in controls.items()
            if isinstance(how, Mapping) and "http" in how
        },
        filling=_filling(controls.get("compress", {})),
        sessions=data.get("sessions", {}).get("path", DEFAULT_SESSIONS),
        session_field=data.get("sessions", {}).get("field", ""),
        session_fields=data.get("sessions", {}).get("fields", {}),
        legacy=data.get("legacy", ""),
        probe=data.get("probe", ""),
        origin=data.get("origin", DEFAULT_ORIGIN),
        headers={name: _from_environment(value, path) for name, value in data.get("headers", {}).items()},
        key_field=KeyField.read(data["auth"]) if "auth" in data else KeyField(),
        ca=_certificates(data["ca"], path) if "ca" in data else "",
        summary=data.get("summary", "summar"),
        writes=_tool(data, "write"),
        reads=_tool(data, "read"),
    )


def _filling(compress: Mapping[str, Any]) -> Filling | None:
    return Filling(compress["turns"], compress["characters"]) if "turns" in compress else None


def _tool(data: Mapping[str, Any], name: str) -> ToolCall | None:
    tool = data.get("tools", {}).get(name)
    return ToolCall(tool["name"], tool["arguments"]) if tool else None


def _process(data: Mapping[str, Any], path: Path) -> Process:
    env = {name: _from_environment(value, path) for name, value in data.get("env", {}).items()}
    taken = tuple(env[name] for name, value in data.get("env", {}).items() if value.startswith("$"))
    return Process(
        tuple(data["start"]),
        data.get("ready", "/health"),
        env,
        data.get("seconds", 30.0),
        keyless=tuple(data.get("keyless", ())),
        files=data.get("files", {}),
        isolated=data.get("isolated", False),
        warm_up=data.get("warm_up", 0.0),
        stop_seconds=data.get("stop_seconds", 10.0),
        secrets=taken,
    )


def _certificates(name: str, path: Path) -> str:
    """The file lies beside the profile, where its name is no whole path."""
    file = str(path.parent / Path(name).expanduser())
    trust(file)
    return file


def _from_environment(value: str, path: Path) -> str:
    """`$NAME` is the value of that variable; anything else stands for itself."""
    if not value.startswith("$"):
        return value
    if value[1:] not in os.environ:
        raise UsageError(f"{value} is not set in the environment.", where=str(path), do=f"Run: export {value[1:]}=…")
    return os.environ[value[1:]]

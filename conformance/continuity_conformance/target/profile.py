"""The profile: what the kit must know about a target and cannot learn from its URL.

A profile comes from a file (`profile_file`), from a plugin (`--target NAME`), or has only defaults for a bare URL.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from continuity_conformance.http.messages import USER_AGENT, Answer, KeyField, dig
from continuity_conformance.target.control_context import Control
from continuity_conformance.target.id_form import IdForm
from continuity_conformance.target.old_database import OldStore
from continuity_spec import Step

DEFAULT_HEADER: Final = "X-Hermes-Session-Id"
_TOO_MANY: Final = 429
_AT_ONCE: Final = 20
_SHARED_RESPONSES: Final = 1000
DEFAULT_ORIGIN: Final = "http://continuity.test"
DEFAULT_SESSIONS: Final = "/v1/sessions"
CHAT_PATH: Final = "/v1/chat/completions"
RESPONSES_PATH: Final = "/v1/responses"
CONVERSATIONS_PATH: Final = "/v1/conversations"
_ABSENT: Final = object()
LEFT_OUT: Final = "none"
"""In `body_names`: the target does not take this field."""
DEFAULT_OPTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "derivation": "content-v1",
        "compaction": "rotate",
        "echo": "tip",
        "degraded": "answer",
        "turns": "serialize",
        "environment": "shared",
        "tells": "header",
        "announces": "finish-chunk",
    }
)

Chat = Literal["sessions", "none"]
"""Whether a target keeps conversations on /v1/chat/completions. If not, everything is examined over /v1/responses."""

Slugs = Literal["named", "made", "none"]
"""Which values of `conversation` a target accepts: any text of the client's, only ids that POST /v1/conversations created, or none."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much load the target takes, and how large its own limits are."""

    parallel: int = 16  # scenarios at the same time
    at_once: int = _AT_ONCE  # turns of one step at the same time
    turn_seconds: float = 20.0  # the longest time for one turn
    responses: int = 0  # responses in the target's cache; 0: unknown
    body: int = 0  # bytes in a request body; 0: unknown
    ids: int = 300  # ids that the target is asked to mint
    servers: int = 1  # processes that share the calm scenarios, where the kit starts the target
    examples: int = 0  # generated examples, unless the user asks for a number; 0: the default of all targets
    disturbed: int = 2  # processes that play disturbing scenarios at the same time, one scenario each

    def allow(self, answer: Answer) -> bool:
        """Whether an answer is a 429 that the target may give under load: the profile declares a limit, and the answer has Retry-After."""
        return self.at_once < _AT_ONCE and answer.status == _TOO_MANY and bool(answer.fields("Retry-After"))


@dataclass(frozen=True, slots=True)
class Process:
    """How to start the target.

    In the commands, in `env` and in `files`, `{port}` is a free port, `{folder}` a folder for this process, and `{probe}` the URL of the probe model.
    """

    start: tuple[str, ...]
    ready: str = "/health"
    """The path that answers once the target is up."""
    base: str = ""
    """The path that all paths of the contract follow, such as /api; not that of `ready`."""
    env: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 30.0
    """How long the start may take."""
    alone: tuple[str, ...] = ()
    """More arguments for a server that plays one scenario at a time, such as a small cache that fills quickly."""
    several: tuple[str, ...] = ()
    """More arguments for each of several processes of a crash campaign, such as that it need not be several itself."""
    keyless: tuple[str, ...] = ()
    """The command that starts the target for several users with no key configured."""
    keyless_env: Mapping[str, str] | None = None
    """The environment variables of `keyless`; None: those of `env` that contain no key."""
    single_user: tuple[str, ...] = ()
    """The command that starts the target for one person with no key configured."""
    single_user_env: Mapping[str, str] | None = None
    """The environment variables of `single_user`, as for `keyless`."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files to write into the folder before the first start: text by name."""
    isolated: bool = False
    """Pass on only PATH and the language of the user's environment, keep home and temporary files in the folder, and block all network but loopback."""
    warm_up: float = 0.0
    """How long the first turn may take, which must succeed before the target is ready; 0: no such turn."""
    stop_seconds: float = 10.0
    """How long the target may take to end before it is killed."""
    preload: tuple[str, ...] = ()
    """For a target that is started by `python -m MODULE`: the modules that take long to import. It is then forked from a process that has imported them."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values of `env` that come from the kit's own environment."""


@dataclass(frozen=True, slots=True)
class Filling:
    """Compression by filling the context: this many turns of this many characters make the target compress in the last one.

    Without `characters` the target counts turns, however long they are.
    """

    turns: int
    characters: int = 0


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool of the target. `arguments` is JSON; `{name}` and `{content}` in it are filled in."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Profile:
    """What the kit knows about a target. Options and offers that are not given here come from GET /v1/capabilities."""

    name: str
    header: str = ""
    other_headers: tuple[str, ...] = ()
    """More headers that name the session, in the order of their precedence after `header`."""
    sessions_by_user: bool = False
    """The body field `user` names a session where no header does."""
    body: str = ""
    model: str = "default"
    chat: Chat = "sessions"
    slugs: Slugs = "named"
    ids: IdForm | None = None
    """The form of the session ids and slugs that the target accepts; None: any text."""
    body_fields: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """More fields of the body of every turn."""
    conversation_fields: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The fields of the body of POST /v1/conversations."""
    body_names: Mapping[str, str] = field(default_factory=dict)
    """What the target calls `model` and `conversation` in the body of a turn; `none`: it does not take the field."""
    principals: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The keys, by principal."""
    identities: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """Header fields that say who sends a request, by principal; a trusted proxy sets them in production."""
    options: Mapping[str, str] = field(default_factory=dict)
    offers: frozenset[str] | None = None
    single_user: bool = False
    evicts: bool = True
    """False: the target keeps every response until a client deletes it, so that nothing about evictions applies."""
    limits: Limits = Limits()
    process: Process | None = None
    previous: Process | None = None
    """How to start the previous release, for scenarios that upgrade."""
    legacy: str = ""
    old_store: OldStore | None = None
    """How old databases are written, where `legacy` names no SQLite file."""
    token: str = field(default="", repr=False)
    controls: Mapping[str, Control] = field(default_factory=dict)
    filling: Filling | None = None
    sessions: str = DEFAULT_SESSIONS
    """The path of the target's sessions, where it is not that of the contract."""
    session_field: str = ""
    """The field of the answer that holds the session, where the session is not the answer itself."""
    session_fields: Mapping[str, str] = field(default_factory=dict)
    """The target's names of the fields of a session, by their names in the contract, where they differ."""
    probe: str = ""
    origin: str = DEFAULT_ORIGIN
    any_origin: bool = False
    """The target allows web pages of every site on purpose: `origin: "*"`."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    hidden: tuple[str, ...] = field(default=(), repr=False)
    """Values from the environment that are in no other field of secrets."""
    key_field: KeyField = field(default_factory=KeyField)
    balanced: bool = False
    """Several servers share the address, and a connection leads to one of them: each request then gets a connection of its own."""
    ca: str = ""
    """A file of certificates to trust beside those of the system."""
    summary: str = "summar"
    writes: ToolCall | None = None
    reads: ToolCall | None = None

    def path(self, path: str) -> str:
        """The target's path for a path of the contract."""
        return _moved(path, old=DEFAULT_SESSIONS, new=self.sessions)

    def documented_path(self, path: str) -> str:
        """The contract's path for a path of the target."""
        return _moved(path, old=self.sessions, new=DEFAULT_SESSIONS)

    @property
    def documented_sessions(self) -> bool:
        """Whether sessions have the path and the form of the contract."""
        return (self.sessions, self.session_field, dict(self.session_fields)) == (DEFAULT_SESSIONS, "", {})

    def session(self, body: object) -> object:
        """The session in an answer of this target, in the form of the contract.

        A session in a field of its own needs no `object`: the field already says what it is.
        """
        session = dig(body, self.session_field) if self.session_field else body
        if not isinstance(session, Mapping):
            return session
        renamed = {ours: session[theirs] for ours, theirs in self.session_fields.items() if theirs in session}
        return {**({"object": "session"} if self.session_field else {}), **session, **renamed}

    def turn_body(self, body: Mapping[str, object]) -> dict[str, object]:
        """The body of a turn as this target takes it: with the fields that it always wants, and with its names of fields."""
        own = {name: self._own_form(name, value) for name, value in body.items() if not self.leaves_out(name)}
        named = {self.body_names.get(name, name): value for name, value in own.items() if value is not _ABSENT}
        return {**self.body_fields, **named}

    def _own_form(self, name: str, value: object) -> object:
        """The value of a field. A field of the target's own in place of `conversation` takes its text: neither an object nor null."""
        if name != "conversation" or name not in self.body_names:
            return value
        return _ABSENT if value is None else (dig(value, "id") or value)

    def new_conversation(self, body: Mapping[str, object] = MappingProxyType({})) -> dict[str, object]:
        """The body of POST /v1/conversations as this target takes it."""
        return {**self.conversation_fields, **body}

    def body_of(self, method: str, path: str, body: object) -> object:
        """The body of any request as this target takes it, for a path of the contract."""
        if method != "POST" or not isinstance(body, Mapping):
            return body
        if path in {CHAT_PATH, RESPONSES_PATH}:
            return self.turn_body(body)
        return self.new_conversation(body) if path == CONVERSATIONS_PATH else body

    def leaves_out(self, name: str) -> bool:
        """Whether the target does not take this field of a body."""
        return self.body_names.get(name) == LEFT_OUT

    def first_turn(self, text: str, *, store: bool = False) -> tuple[str, dict[str, object]]:
        """The path and the body of a turn that names no session, on an endpoint that keeps conversations."""
        if self.chat == "none":
            return RESPONSES_PATH, self.turn_body({"model": self.model, "input": text, "store": store})
        return CHAT_PATH, self.turn_body({"model": self.model, "messages": [{"role": "user", "content": text}]})

    @property
    def everyone(self) -> frozenset[str]:
        """The principals that the kit can act as."""
        return frozenset({*self.principals, *self.identities})

    def headers_of(self, principal: str) -> list[tuple[str, str]]:
        """The header fields of every request of a principal."""
        return [*self.request_headers(self.principals.get(principal, "")), *self.identities.get(principal, {}).items()]

    def request_headers(self, key: str) -> list[tuple[str, str]]:
        """The header fields of every request: the kit's User-Agent, the profile's own headers, and the key where there is one."""
        fields = [("User-Agent", USER_AGENT), *self.headers.items()]
        return [*fields, self.key_field.filled(key)] if key else fields

    def stored_responses(self, step: Step) -> int:
        """How many responses a step stores at most, with the steps inside it. A turn that is refused counts too."""
        return sum(self._responses_of(each) for each in step.walk())

    def _responses_of(self, step: Step) -> int:
        if step.verb == "request":
            return int(
                step.params.get("method") == "POST" and str(step.params.get("path", "")).endswith(RESPONSES_PATH)
            )
        if step.verb != "respond" or step.params.get("store") is False:
            return 0
        fillers = self.filling.turns if self.filling and step.params.get("compress") is True else 0
        return min(step.at_once, self.limits.at_once) + fillers

    @property
    def shared_responses(self) -> int:
        """How many responses the cache of a server that scenarios share holds; 0: unknown.

        Where `process.alone` adds arguments, `limits.responses` is about the servers that play alone, and the others hold at least a thousand.
        """
        alone = self.process is not None and bool(self.process.alone)
        return (
            max(self.limits.responses, _SHARED_RESPONSES) if alone and self.limits.responses else self.limits.responses
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must never appear in a report."""
        environment = self.process.secrets if self.process is not None else ()
        # `X-User-Id: alice` is no secret: the kit itself writes the names of its principals.
        proofs = [
            each for fields in self.identities.values() for each in fields.values() if each not in self.identities
        ]
        configured = (
            *self.principals.values(),
            *proofs,
            self.token,
            *self.headers.values(),
            *environment,
            *self.hidden,
        )
        return tuple(secret for secret in configured if secret)


def _moved(path: str, old: str, new: str) -> str:
    rest = path.removeprefix(old)
    return new + rest if rest != path and rest[:1] in {"", "/", "?"} else path

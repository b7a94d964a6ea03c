"""Settings: the command line, checked once and frozen. It imports no other module of the server."""

import argparse
import ipaddress
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

HEADER: Final = "X-Hermes-Session-Id"
RELEASE: Final = "1.0"
DEFAULT_MODEL: Final = "continuity-agent"
KEYLESS: Final = "single-user"
LARGEST_BODY: Final = 16 * 1024 * 1024
_LAST_PORT: Final = 65535
_MOST_CONNECTIONS: Final = 10_000
_OTHER_FILES: Final = 64
"""File descriptors for the database, the log and the workspace."""
_MANY_FILES: Final = 1_000_000
DATABASE: Final = "continuity.db"
POSTGRES: Final = ("postgresql://", "postgres://")

# The first value is the default.
OPTION_VALUES: Final = {
    "derivation": ("content-v1", "content-v2", "none"),
    "compaction": ("rotate", "in-place"),
    "echo": ("tip", "alias"),
    "degraded": ("answer", "refuse"),
    "turns": ("serialize", "reject"),
    "environment": ("shared", "per-session", "none"),
    "tells": ("header", "nothing"),
    "announces": ("finish-chunk", "event"),
}


@dataclass(frozen=True, slots=True)
class Options:
    """What the contract leaves open: a server declares its values."""

    derivation: str = "content-v1"
    compaction: str = "rotate"
    echo: str = "tip"
    degraded: str = "answer"
    turns: str = "serialize"
    environment: str = "shared"
    tells: str = "header"
    announces: str = "finish-chunk"

    def as_json(self) -> dict[str, str]:
        return {option.name: getattr(self, option.name) for option in fields(self)}


@dataclass(frozen=True, slots=True)
class Key:
    """A secret and the principal that it stands for. The secret is never shown."""

    principal: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a server is started with."""

    host: str = "127.0.0.1"
    port: int = 0
    db: str = field(default=DATABASE, repr=False)
    temporary: bool = False
    """The database is deleted when the server ends."""
    workspace: str | None = None
    replicas: int = 1
    keys: tuple[Key, ...] = ()
    model: str | None = None
    model_key: str | None = field(default=None, repr=False)
    controls: str | None = field(default=None, repr=False)
    defects: tuple[str, ...] = ()
    options: Options = Options()
    cors: tuple[str, ...] = ()
    other_headers: tuple[str, ...] = ()
    max_responses: int = 1000
    context: int = 32_000
    max_body: int = LARGEST_BODY
    max_connections: int | None = None
    public: bool = False
    list_defects: bool = False

    @property
    def headers(self) -> tuple[str, ...]:
        """ECHO-14: the headers that name the session, in the order of their precedence. Answers have the first one."""
        return (HEADER, *self.other_headers)

    @property
    def single_user(self) -> bool:
        """ISOLATE-02: a server that only one person can reach needs no key, and says so in its capabilities."""
        return not self.keys and not self.public and is_loopback(self.host)

    @property
    def most_connections(self) -> int:
        """How many connections are served at a time. By default so many that the file descriptors last, also where each runs a turn, which is a connection to the model."""
        return self.max_connections or max(1, min(_MOST_CONNECTIONS, (_open_files() - _OTHER_FILES) // 2))

    @property
    def is_shared(self) -> bool:
        """CONCUR-06: several processes may use a database in a file."""
        return self.db != ":memory:"

    @property
    def is_postgres(self) -> bool:
        return self.db.startswith(POSTGRES)

    @property
    def shown_db(self) -> str:
        """The database without the secrets that its URL may have."""
        if not self.is_postgres:
            return self.db
        parts = urlsplit(self.db)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def warnings(self) -> Iterator[str]:
        """Yield what an operator may not have meant."""
        if self.temporary and Path(DATABASE).exists():
            yield f"{DATABASE} in this folder is not used (--db {DATABASE})"
        if not self.keys and not is_loopback(self.host):
            yield "anybody who reaches this address can use the server: it has no keys (--key-file)"
        secrets = Counter(key.secret for key in {key.secret + key.principal: key for key in self.keys}.values())
        if any(principals > 1 for principals in secrets.values()):
            yield "one secret is given to several principals: whoever has it is the first of them"
        if (self.max_connections or 0) + _OTHER_FILES > _open_files():
            yield f"--max-connections {self.max_connections} is too much for a process that may open {_open_files()} files"

    @property
    def first_principal(self) -> str:
        """The principal that the rows of an old database belong to."""
        return self.keys[0].principal if self.keys else KEYLESS


def _open_files() -> int:
    """How many files the process may have open. It is asked again each time, because it can be changed while the process runs."""
    if resource is None:
        return _MANY_FILES
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MANY_FILES if soft == resource.RLIM_INFINITY else soft


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def parse(arguments: list[str] | None = None) -> Settings:
    """Parse the command line. A mistake ends the process with status 2 and a message."""
    parser = _parser()
    values = parser.parse_args(arguments)
    try:
        from_environment = _keys(os.environ.get("CONTINUITY_KEYS", ""))
    except argparse.ArgumentTypeError as error:
        parser.error(f"CONTINUITY_KEYS: {error}")
    database = values.db or os.environ.get("CONTINUITY_DB") or ""
    if values.replicas > 1 and database == ":memory:":
        parser.error("--replicas: each process would have a :memory: database of its own. Name a file, or PostgreSQL.")
    keys = (*values.key, *values.key_file, *from_environment)
    # What one principal's tools wrote must not be there for another's, unless the operator says so.
    apart = {"environment": "per-session"} if len({key.principal for key in keys}) > 1 else {}
    return Settings(
        host=values.host,
        port=values.port,
        db=database or DATABASE,
        temporary=not database,
        workspace=values.workspace,
        replicas=values.replicas,
        keys=keys,
        model=values.model,
        model_key=os.environ.get("CONTINUITY_MODEL_KEY"),
        controls=values.controls or os.environ.get("CONTINUITY_CONTROLS"),
        defects=tuple(values.defect),
        options=Options(**{**apart, **dict(values.option)}),
        cors=tuple(values.cors),
        other_headers=tuple(values.header),
        max_responses=values.max_responses,
        context=values.context,
        max_body=values.max_body,
        max_connections=values.max_connections,
        public=values.public,
        list_defects=values.defects,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="continuity serve", description="The reference server of Session Continuity.")
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    add("--port", type=_port, default=8642, help="port to listen on; 0 takes any free one (default: %(default)s)")
    add(
        "--db",
        type=_database,
        metavar="DB",
        help='SQLite file, ":memory:", or postgresql://user@host/database; or set CONTINUITY_DB (default: a file in a '
        "temporary folder, which is deleted when the server ends)",
    )
    add(
        "--workspace",
        metavar="FOLDER",
        help="folder of the workspace tool (default: workspace-DB, beside the database)",
    )
    add(
        "--replicas",
        type=_positive,
        default=1,
        metavar="N",
        help="so many server processes on one database, at this port and those after it (default: %(default)s)",
    )
    add(
        "--key-file",
        type=_key_file,
        default=(),
        metavar="FILE",
        help="API keys, a line NAME=SECRET for each; or set CONTINUITY_KEYS to such lines",
    )
    add(
        "--key",
        type=_key,
        action="append",
        default=[],
        metavar="NAME=SECRET",
        help="an API key and its principal; others on this machine can see it: prefer --key-file",
    )
    add("--model", metavar="URL", help="OpenAI-compatible base URL that ends in /v1 (default: the built-in model)")
    add(
        "--controls",
        metavar="TOKEN",
        help="turn the control API on, for whoever has this token (or set CONTINUITY_CONTROLS)",
    )
    add(
        "--defect",
        action="append",
        default=[],
        metavar="NAME",
        help="break one rule (repeatable); --defects lists them",
    )
    add("--defects", action="store_true", help="list the defects as JSON and exit")
    add(
        "--option",
        type=_option,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set an option of the contract",
    )
    add("--cors", action="append", default=[], metavar="ORIGIN", help="a web origin that may call this server")
    add(
        "--header",
        action="append",
        default=[],
        metavar="NAME",
        help=f"another header that names the session where {HEADER} is absent",
    )
    add(
        "--max-responses",
        type=_positive,
        default=1000,
        metavar="N",
        help="responses kept per principal (default: %(default)s)",
    )
    add(
        "--context",
        type=_positive,
        default=32_000,
        metavar="N",
        help="compress above this many tokens (default: %(default)s)",
    )
    add(
        "--max-body",
        type=_positive,
        default=LARGEST_BODY,
        metavar="N",
        help="bytes of a request (default: %(default)s)",
    )
    add(
        "--max-connections",
        type=_positive,
        metavar="N",
        help="connections that are served at a time; others wait (default: as many as the open files of the process allow)",
    )
    add(
        "--public",
        action="store_true",
        help="others reach this address too, as behind a proxy: it is for no single user",
    )
    return parser


def _database(text: str) -> str:
    if text.startswith(POSTGRES) and (urlsplit(text).password is not None or "password=" in text):
        raise argparse.ArgumentTypeError(
            "others on this machine can see a password here: set CONTINUITY_DB to the URL, or PGPASSWORD"
        )
    return text


def _key(text: str) -> Key:
    name, _, secret = text.partition("=")
    if not name or not secret:
        raise argparse.ArgumentTypeError("a key is NAME=SECRET, and neither may be empty")
    return Key(name, secret)


def _key_file(path: str) -> tuple[Key, ...]:
    try:
        return _keys(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"{path} cannot be read: {error}") from None


def _keys(lines: str) -> tuple[Key, ...]:
    return tuple(_key(line.strip()) for line in lines.splitlines() if line.strip() and not line.startswith("#"))


def _option(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if name not in OPTION_VALUES:
        raise argparse.ArgumentTypeError(f"there is no option {name!r}; known: {', '.join(OPTION_VALUES)}")
    if value not in OPTION_VALUES[name]:
        raise argparse.ArgumentTypeError(f"{name} is one of {', '.join(OPTION_VALUES[name])}, not {value!r}")
    return name, value


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= _LAST_PORT:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to {_LAST_PORT}")
    return number


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("a number of at least 1")
    return number

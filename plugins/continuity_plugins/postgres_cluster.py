"""A PostgreSQL of our own: a cluster in a temporary folder, with the programs that Debian or another system installed. It ends with the process that started it.

It listens on a socket in that folder only, and asks for no password there: the folder belongs to us alone.
"""

import atexit
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

OWNER: Final = "continuity"
"""The role of the servers. It is no superuser, so that PostgreSQL can take privileges from it."""
_FOLDERS: Final = "/usr/lib/postgresql", "/usr/local/pgsql", "/opt/homebrew/opt"
_USER: Final = "postgres"
_START_SECONDS: Final = 30.0
_SETTINGS: Final = {"listen_addresses": "", "max_connections": "600", "shared_buffers": "64MB", "fsync": "on"}
# The shell ends PostgreSQL when its input ends: with the process that started it, however that ends. It then removes the folder, unless it was told to keep it.
_WITH_US: Final = '"$@" & while read -r word; do keep=$word; done; kill -INT $!; wait; [ -n "$keep" ] || rm -rf "$0"'
_KEEP: Final = b"keep\n"


class NoPostgresError(Exception):
    """PostgreSQL is not installed, or does not start."""


def program(name: str) -> Path:
    """Return the path of a program of PostgreSQL, of the newest version that is installed."""
    found = [path for folder in _FOLDERS for path in Path(folder).glob(f"*/bin/{name}")]
    elsewhere = shutil.which(name)
    if found:
        return max(found, key=lambda path: float(path.parts[-3]) if path.parts[-3].replace(".", "").isdigit() else 0)
    if elsewhere is None:
        raise NoPostgresError(f"{name} is not there: install PostgreSQL (Debian: apt-get install postgresql).")
    return Path(elsewhere)


class Cluster:
    """A running PostgreSQL. `stop` and `start` are for tests of a restart."""

    def __init__(self) -> None:
        self._user = _USER if os.geteuid() == 0 else None
        self._folder = Path(tempfile.mkdtemp(prefix="continuity-pg-", dir="/tmp"))
        self._running: subprocess.Popen[bytes] | None = None
        if self._user is not None:
            shutil.chown(self._folder, self._user)
        atexit.register(self.close)
        try:
            self._run("initdb", "--auth=trust", "--no-sync", f"--username={_USER}", f"--pgdata={self._data}")
            self.start()
            self.sql(f"CREATE ROLE {OWNER} LOGIN CREATEDB")
        except BaseException:
            self.close()
            raise

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def url(self, database: str, role: str = OWNER) -> str:
        """The URL of a database of this cluster. It has no secret."""
        return f"postgresql://{role}@/{database}?host={self._folder}"

    def start(self) -> None:
        settings = [f"-c{name}={value}" for name, value in _SETTINGS.items()]
        command = [str(program("postgres")), "-D", str(self._data), "-k", str(self._folder), *settings]
        with (self._folder / "log").open("ab") as log:
            self._running = subprocess.Popen(  # noqa: S603 - PostgreSQL itself
                ["/bin/sh", "-c", _WITH_US, str(self._folder), *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                user=self._user,
                cwd=self._folder,
                start_new_session=True,
            )
        until = time.monotonic() + _START_SECONDS
        while not self._answers():
            if self._running.poll() is not None or time.monotonic() > until:
                raise NoPostgresError(f"PostgreSQL does not start: {(self._folder / 'log').read_text()[-500:]}")
            time.sleep(0.05)

    def stop(self, mode: str = "fast") -> None:
        """Stop it as pg_ctl does: `fast` ends all connections, `immediate` is a crash."""
        self._run("pg_ctl", "stop", f"--mode={mode}", f"--pgdata={self._data}")
        self._end(_KEEP)

    def sql(self, statement: str, database: str = _USER) -> str:
        """Run one statement as the superuser, and return what it finds."""
        where = ("-h", str(self._folder), "-U", _USER, "-d", database)
        return self._run("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", *where, "-c", statement)

    def close(self) -> None:
        atexit.unregister(self.close)
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _end(self, last_word: bytes = b"") -> None:
        if self._running is not None and self._running.stdin is not None:
            self._running.stdin.write(last_word)
            self._running.stdin.close()
            self._running.wait(_START_SECONDS)
        self._running = None

    def _answers(self) -> bool:
        try:
            self.sql("SELECT 1")
        except NoPostgresError:
            return False
        return True

    def _run(self, name: str, *arguments: str) -> str:
        command = [str(program(name)), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, user=self._user, cwd="/", check=False)  # noqa: S603 - PostgreSQL's own programs
        if done.returncode:
            raise NoPostgresError(f"{name}: {(done.stderr or done.stdout).strip()[-500:]}")
        return done.stdout.strip()

"""Environments of targets, installed once and kept in the user's cache: a Python virtual environment, or a folder of npm packages.

Each is named by what it holds, so that versions never meet. One is used only when it was finished: a mark is written last, and whoever installs holds a
lock that others wait for. What the installer says is told while it works, and its last lines where it fails.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from continuity_conformance.core.cache import user_cache
from continuity_conformance.core.errors import KitError, UsageError

Say = Callable[[str], None]
"""Takes a line that tells what goes on. The kit shows it on stderr."""

_FINISHED: Final = "continuity-finished"
_EVERY_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.1
_LAST_LINES: Final = 12
_SHOWN: Final = 100
_NOT_RELEASED: Final = re.compile(
    r"(?:that satisfies the requirement|No matching version found for) (\S+?)(?: \(from versions: (?!none)|\.$)"
)
"""What pip and npm say of a version that nobody has."""
_CREDENTIALS: Final = re.compile(r"//[^/@\s]+@")


@dataclass(frozen=True, slots=True)
class _Recipe:
    """What is installed, in the words that people are told, and the commands that do it in a folder."""

    what: str
    steps: Callable[[Path], Iterator[list[str]]]
    first_on_path: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        path = os.environ.get("PATH", os.defpath)
        return {**os.environ, "PATH": f"{self.first_on_path}{os.pathsep}{path}" if self.first_on_path else path}


def python_environment(name: str, requirements: Sequence[str], say: Say, *, python: str = sys.executable) -> Path:
    """The folder of a virtual environment with these requirements, installed now if it is not there yet."""
    what = [_python_version(python), *requirements, *_contents(requirements)]

    def steps(folder: Path) -> Iterator[list[str]]:
        yield [python, "-m", "venv", "--clear", str(folder)]
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
        yield [*pip, "install", "--progress-bar", "off", *requirements]

    return _installed(name, what, _Recipe(", ".join(requirements), steps), say)


def npm_environment(
    name: str, packages: Sequence[str], say: Say, *, arguments: Sequence[str] = (), node: Path | None = None
) -> Path:
    """The folder that these npm packages are installed under (`node_modules/.bin` has their commands).

    `node` is the folder of the node that their own scripts are run by, where it is not the one on PATH.
    """
    if shutil.which("npm") is None:
        raise UsageError(f"{name} needs Node and npm, and there is no command npm.", do="Install Node, and run again.")

    def steps(folder: Path) -> Iterator[list[str]]:
        own = ["--no-audit", "--no-fund", "--loglevel", "http", "--prefix", str(folder), *arguments]
        yield ["npm", "install", *own, *packages]

    return _installed(name, [*packages, *arguments], _Recipe(", ".join(packages), steps, node), say)


def _installed(name: str, key: Sequence[str], recipe: _Recipe, say: Say) -> Path:
    digest = hashlib.sha256(json.dumps(list(key)).encode()).hexdigest()[:12]
    folder = user_cache() / "targets" / f"{name}-{digest}"
    if (folder / _FINISHED).exists():
        return folder
    with _locked(folder, name, say):
        if not (folder / _FINISHED).exists():  # whoever held the lock before may have finished it
            _install(folder, recipe, say)
    return folder


def _install(folder: Path, recipe: _Recipe, say: Say) -> None:
    say(f"installs {recipe.what} in {folder}: once, and it may take minutes")
    began = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for command in recipe.steps(folder):
        _run(command, folder, recipe, began, say)
    (folder / _FINISHED).write_text(f"{recipe.what}\n", encoding="utf-8")
    say(f"installed {recipe.what} in {time.monotonic() - began:.0f} s")


def _run(command: Sequence[str], folder: Path, recipe: _Recipe, began: float, say: Say) -> None:
    """Run one step of an installation. It ends with the kit, whatever ends that."""
    last: deque[str] = deque(maxlen=_LAST_LINES)
    with subprocess.Popen(  # noqa: S603 - a command that a plugin names, and no shell
        command,
        cwd=folder,
        env=recipe.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        reader = threading.Thread(target=_read, args=(running.stdout, last), daemon=True)
        reader.start()
        try:
            _wait(running, last, recipe.what, began, say)
        finally:
            _end(running)
            reader.join()
    if running.returncode:
        _must_be_released(folder, recipe, last)
        said = "\n  ".join(last) or "nothing"
        raise KitError(
            f"{recipe.what} cannot be installed: {Path(command[0]).name} ended with code {running.returncode}.",
            where=str(folder),
            do=f"It said:\n  {said}",
        )


def _must_be_released(folder: Path, recipe: _Recipe, said: Sequence[str]) -> None:
    """A version that nobody has is a mistake of whoever asks for it. An index that cannot be reached has no versions at all, and that is none."""
    told = [found for line in said if (found := _NOT_RELEASED.search(line)) and found[1] in recipe.what]
    if told:
        shutil.rmtree(folder, ignore_errors=True)
        raise UsageError(f"{told[0][1]} cannot be installed.", do=f"The installer says: {told[0].string}")


def _contents(requirements: Sequence[str]) -> list[str]:
    """What is in the files among them: a wheel that was built anew is another one."""
    files = [each.partition(" @ file://")[2] for each in requirements]
    return [hashlib.sha256(Path(unquote(file)).read_bytes()).hexdigest() for file in files if file]


def _wait(running: "subprocess.Popen[str]", last: "deque[str]", what: str, began: float, say: Say) -> None:
    said = time.monotonic()
    while running.poll() is None:
        time.sleep(_POLL_SECONDS)
        if time.monotonic() - said >= _EVERY_SECONDS:
            said = time.monotonic()
            say(f"installs {what} ({said - began:.0f} s): {_newest(last)[:_SHOWN]}")


def _newest(last: "deque[str]") -> str:
    """What the installer does now; what it warns of says nothing about that."""
    doing = (line for line in reversed([*last]) if not line.lower().startswith(("warning", "npm warn")))
    return next(doing, "…")


def _read(lines: Iterator[str], last: "deque[str]") -> None:
    """Keep the last lines, without what an address may have in it to get in with."""
    last.extend(_CREDENTIALS.sub("//…@", line.rstrip()) for line in lines if line.strip())


def _end(running: "subprocess.Popen[str]") -> None:
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


@contextmanager
def _locked(folder: Path, name: str, say: Say) -> Iterator[None]:
    """Let one process at a time install this environment. The system releases the lock of a process that dies."""
    from filelock import FileLock, Timeout  # noqa: PLC0415 - only an installation needs it

    lock = FileLock(folder.with_name(f"{folder.name}.lock"))
    began = time.monotonic()
    while True:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            held = lock.acquire(timeout=_EVERY_SECONDS, poll_interval=_POLL_SECONDS)
        except Timeout:
            say(f"waiting for another installation of {name} ({time.monotonic() - began:.0f} s)")
        except OSError as error:
            raise KitError(
                f"{name} cannot be installed: {error.strerror}.",
                where=str(folder.parent),
                do="Set XDG_CACHE_HOME to another folder.",
            ) from None
        else:
            break
    with held:
        yield


def _python_version(python: str) -> str:
    if python == sys.executable:
        return f"{python} {sys.version_info.major}.{sys.version_info.minor}"
    return python

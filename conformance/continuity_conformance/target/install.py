"""Environments of targets: a Python virtual environment or a folder of npm packages, installed once and kept in the user's cache.

The name of an environment is a digest of its contents, so different versions never share a folder. A marker file is written last: an environment without
it is installed again. One process installs at a time; the others wait. Installer output is shown as progress, and its last lines on failure.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from continuity_conformance.core.cache import user_cache
from continuity_conformance.core.errors import KitError, UsageError
from continuity_conformance.target.build import digest_of_checkout

Say = Callable[[str], None]
"""Shows one line of progress. The kit writes it to stderr."""

_FINISHED: Final = "continuity-finished"
_EVERY_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.1
_LAST_LINES: Final = 12
_SHOWN: Final = 100
_NOT_RELEASED: Final = re.compile(
    r"(?:that satisfies the requirement|No matching version found for|there is no version of) (\S+?)"
    r"(?: \(from versions: (?!none)| and |\.$)"
)
"""The messages of pip, npm and uv about a version that the index does not have."""
_CREDENTIALS: Final = re.compile(r"//[^/@\s]+@")
_PIP_SOURCES: Final = re.compile(
    r"\.(?:index-url|extra-index-url|find-links|no-index|proxy|cert|client-cert|trusted-host)="
)
"""Settings of pip that decide where packages come from, as `pip config list` prints them."""


@dataclass(frozen=True, slots=True)
class _Recipe:
    """What is installed, as messages name it, and the commands that install it in a folder."""

    title: str
    steps: Callable[[Path], Iterator[list[str]]]
    first_on_path: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        path = os.environ.get("PATH", os.defpath)
        return {**os.environ, "PATH": f"{self.first_on_path}{os.pathsep}{path}" if self.first_on_path else path}


def python_environment(name: str, requirements: Sequence[str], say: Say, *, python: str = sys.executable) -> Path:
    """The folder of a virtual environment with these requirements. Installed with uv or pip if it is missing."""
    contents = [_python_version(python), *requirements, *_digests(requirements)]

    def steps(folder: Path) -> Iterator[list[str]]:
        uv = _usable_uv()
        yield from _with_uv(uv, python, folder, requirements) if uv else _with_pip(python, folder, requirements)

    return _installed(name, contents, _Recipe(", ".join(requirements), steps), say)


def _with_uv(uv: str, python: str, folder: Path, requirements: Sequence[str]) -> Iterator[list[str]]:
    yield [uv, "--no-progress", "venv", "--no-project", "--python", python, str(folder)]
    pip = [uv, "--no-progress", "pip", "install", "--python", str(folder / "bin" / "python")]
    # pip compiles by itself. Without bytecode each of the servers that start side by side compiles for itself.
    yield [*pip, "--compile-bytecode", *requirements]


def _with_pip(python: str, folder: Path, requirements: Sequence[str]) -> Iterator[list[str]]:
    yield [python, "-m", "venv", "--clear", str(folder)]
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    yield [*pip, "install", "--progress-bar", "off", *requirements]


def _usable_uv() -> str | None:
    """The uv command, where there is one. uv ignores pip's settings, so a user who tells pip where packages come from gets pip."""
    uv = shutil.which("uv")
    if uv is None or not _succeeds([uv, "--version"]):
        return None
    return None if _PIP_SOURCES.search(_output([sys.executable, "-m", "pip", "config", "list"])) else uv


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False).stdout  # noqa: S603 - no shell


def _succeeds(command: Sequence[str]) -> bool:
    """Whether it runs: pyenv has a command for a uv that only another Python version has."""
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603 - no shell


def npm_environment(  # noqa: PLR0913 - each is a setting of npm, and most calls need none
    name: str,
    packages: Sequence[str],
    say: Say,
    *,
    arguments: Sequence[str] = (),
    overrides: Mapping[str, str] | None = None,
    node: Path | None = None,
) -> Path:
    """The folder of these npm packages, installed if it is missing. Their commands are in `node_modules/.bin`.

    `overrides` replaces dependencies, as in a package.json: the version, or another package (`npm:NAME@VERSION`), by name.
    `node` is the folder of the node that runs the packages' own scripts, where it is not the one on PATH.
    """
    if shutil.which("npm") is None:
        raise UsageError(f"{name} needs Node and npm, and there is no command npm.", do="Install Node, and run again.")

    def steps(folder: Path) -> Iterator[list[str]]:
        if overrides:
            (folder / "package.json").write_text(json.dumps({"private": True, "overrides": {**overrides}}))
        options = ["--no-audit", "--no-fund", "--loglevel", "http", "--prefix", str(folder), *arguments]
        yield ["npm", "install", *options, *packages]

    replaced = [f"{package}={by}" for package, by in (overrides or {}).items()]
    return _installed(name, [*packages, *arguments, *replaced], _Recipe(", ".join(packages), steps, node), say)


def _installed(name: str, contents: Sequence[str], recipe: _Recipe, say: Say) -> Path:
    digest = hashlib.sha256(json.dumps(list(contents)).encode()).hexdigest()[:12]
    folder = user_cache() / "targets" / f"{name}-{digest}"
    if (folder / _FINISHED).exists():
        return folder
    with _locked(folder, name, say):
        if not (folder / _FINISHED).exists():  # another process may have finished while this one waited
            _install(folder, recipe, say)
    return folder


def _install(folder: Path, recipe: _Recipe, say: Say) -> None:
    say(f"installing {recipe.title} in {folder} (only once; it can take minutes)")
    began = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for command in recipe.steps(folder):
        _run(command, folder, recipe, began, say)
    (folder / _FINISHED).write_text(f"{recipe.title}\n", encoding="utf-8")
    say(f"installed {recipe.title} in {time.monotonic() - began:.0f} s")


def _run(command: Sequence[str], folder: Path, recipe: _Recipe, began: float, say: Say) -> None:
    """Run one command of an installation. It is killed when the kit is interrupted."""
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
    ) as installer:
        assert installer.stdout is not None
        reader = threading.Thread(target=_read, args=(installer.stdout, last), daemon=True)
        reader.start()
        try:
            _wait(installer, last, recipe.title, began, say)
        finally:
            _kill(installer)
            reader.join()
    if installer.returncode:
        _check_released(folder, recipe, last)
        raise KitError(
            f"{recipe.title} cannot be installed: {Path(command[0]).name} ended with code {installer.returncode}.",
            where=str(folder),
            do="Its last output:\n  " + ("\n  ".join(last) or "none"),
        )


def _check_released(folder: Path, recipe: _Recipe, output: Sequence[str]) -> None:
    """Raise UsageError where the index has the package but not this version. An index that cannot be reached has no versions at all."""
    matches = [match for line in output if (match := _NOT_RELEASED.search(line)) and match[1] in recipe.title]
    if matches:
        shutil.rmtree(folder, ignore_errors=True)
        raise UsageError(f"{matches[0][1]} cannot be installed.", do=f"The installer says: {matches[0].string.strip()}")


def _digests(requirements: Sequence[str]) -> list[str]:
    """Digests of the wheels and checkouts among the requirements: one that has changed is another one."""
    names = [each.partition(" @ file://")[2] for each in requirements]
    paths = [Path(unquote(name)) for name in names if name]
    return [
        digest_of_checkout(path) if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest() for path in paths
    ]


def _wait(installer: "subprocess.Popen[str]", last: "deque[str]", title: str, began: float, say: Say) -> None:
    shown = time.monotonic()
    while installer.poll() is None:
        time.sleep(_POLL_SECONDS)
        if time.monotonic() - shown >= _EVERY_SECONDS:
            shown = time.monotonic()
            say(f"installing {title} ({shown - began:.0f} s): {_progress(last)[:_SHOWN]}")


def _progress(last: "deque[str]") -> str:
    """The newest line that is not a warning."""
    lines = (line for line in reversed([*last]) if not line.lower().startswith(("warning", "npm warn")))
    return next(lines, "…")


def _read(lines: Iterator[str], last: "deque[str]") -> None:
    """Keep the last lines, without credentials in URLs."""
    last.extend(_CREDENTIALS.sub("//…@", line.rstrip()) for line in lines if line.strip())


def _kill(installer: "subprocess.Popen[str]") -> None:
    if installer.poll() is None:
        os.killpg(installer.pid, signal.SIGKILL)
        installer.wait()


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

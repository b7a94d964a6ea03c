"""A build of a target's package, as `NAME==VERSION` names it: a release, or the file of a wheel that is not released yet."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version


@dataclass(frozen=True, slots=True)
class Build:
    """A version, or the path of a wheel, as the user wrote it."""

    asked: str

    @property
    def is_wheel(self) -> bool:
        return self.asked.endswith(".whl")

    @property
    def version(self) -> str:
        """The package's version; empty for a file whose name is not that of a wheel."""
        return _version_of_wheel(Path(self.asked).name) if self.is_wheel else self.asked

    @property
    def title(self) -> str:
        """The version as reports show it. A wheel is not the release with its version, so the title names the file."""
        return f"{self.version} ({Path(self.asked).name})" if self.is_wheel else self.version

    @property
    def number(self) -> tuple[int, ...]:
        """The release number, to compare with: `2.0rc1` has that of `2.0`. Empty where there is none."""
        try:
            return Version(self.version).release
        except InvalidVersion:
            return ()

    def requirement(self, package: str) -> str:
        """The requirement that an installer takes. `package` is `NAME` or `NAME[EXTRA]`."""
        return f"{package} @ {Path(self.asked).as_uri()}" if self.is_wheel else f"{package}=={self.asked}"


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

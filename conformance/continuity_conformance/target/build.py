"""Builds: which one of a target's package `NAME==VERSION` asks for, a release or a wheel that nobody has released yet."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_VERSION: Final = re.compile(r"(\d+(?:\.\d+)*)[A-Za-z0-9.+-]*")


@dataclass(frozen=True, slots=True)
class Build:
    """What was asked for: a version, or the path of a wheel."""

    asked: str

    @property
    def is_wheel(self) -> bool:
        return self.asked.endswith(".whl")

    @property
    def version(self) -> str:
        """As the package has it: the second part of a wheel's name."""
        return [*Path(self.asked).name.split("-"), ""][1] if self.is_wheel else self.asked

    @property
    def title(self) -> str:
        """For people: a wheel is not the release that has its version."""
        return f"{self.version} ({Path(self.asked).name})" if self.is_wheel else self.version

    @property
    def number(self) -> tuple[int, ...]:
        """To compare with: that of a pre-release is its release's."""
        found = _VERSION.match(self.version)
        return tuple(map(int, found[1].split("."))) if found else ()

    def requirement(self, package: str) -> str:
        """What pip is told (`NAME` or `NAME[EXTRA]`)."""
        return f"{package} @ {Path(self.asked).as_uri()}" if self.is_wheel else f"{package}=={self.asked}"


def looks_like(version: str, known: Sequence[str]) -> bool:
    """Whether it could be a version of the package: as many numbers as those that are known. `0.19` is no release, and pip would take it for one."""
    return bool(_VERSION.fullmatch(version)) and len(Build(version).number) in {
        len(Build(each).number) for each in known
    }

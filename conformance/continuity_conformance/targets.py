"""Targets by name or URL: what `--target` means.

A plugin registers a class under the entry-point group `continuity.targets`; its `profile()` says how the target is started and what it offers.
"""

from importlib.metadata import entry_points
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

from continuity_conformance.errors import UsageError
from continuity_conformance.profile import Profile, load_profile
from continuity_spec.errors import suggestion

GROUP: Final = "continuity.targets"
BUNDLED: Final = "reference"


class TargetPlugin(Protocol):
    """What a plugin provides: a target that the kit starts by itself."""

    def profile(self) -> Profile:
        """The profile of a target that is about to be started."""


def target_names() -> list[str]:
    return sorted(point.name for point in entry_points(group=GROUP))


def resolve(target: str | None, profile: Path | Profile | None) -> tuple[Profile, str]:
    """The profile and the address of a target. The address is empty where the kit starts it."""
    if isinstance(profile, Profile):
        return profile, target or ""
    if target is None or "://" not in target:
        return _named(target or BUNDLED, profile), ""
    _must_be_http(target)
    given = load_profile(profile) if profile else Profile(name=urlsplit(target).netloc.rpartition("@")[2])
    return given, target.rstrip("/").removesuffix("/v1")


def _named(name: str, profile: Path | None) -> Profile:
    if profile is not None:
        given = load_profile(profile)
        if given.process is not None and name in {given.name, BUNDLED}:
            return given
        raise UsageError(
            "A target that is started by name has a profile of its own.",
            where=str(profile),
            do="Give a URL with --target, or add `process:`.",
        )
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        hint = suggestion(name, points) or f"Known names: {', '.join(sorted(points))}."
        raise UsageError(
            f'There is no target "{name}".',
            do=f"{hint} A running server is given by its URL: http://127.0.0.1:8000".strip(),
        )
    plugin: TargetPlugin = points[name].load()()
    return plugin.profile()


def _must_be_http(url: str) -> None:
    try:
        address = urlsplit(url)
        usable = (
            address.scheme in {"http", "https"}
            and bool(address.hostname)
            and (address.port is None or address.port > 0)
        )
    except ValueError:
        usable = False
    if not usable:
        raise UsageError(f'"{url}" is not an address that can be reached.', do="Give it as http://host:port")

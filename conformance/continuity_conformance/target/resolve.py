"""Targets by name or URL: what `--target` means.

A plugin registers a class under the entry-point group `continuity.targets`; its `profile()` installs what is missing, and says how the target is started
and what it offers. `NAME==VERSION` asks for one of the versions that it knows, or for any other where it says so (`any_version`, `any_wheel`).
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

from continuity_conformance.core.entry_points import Plugin, plugins
from continuity_conformance.core.errors import ContinuityError, UsageError
from continuity_conformance.target.build import looks_like
from continuity_conformance.target.install import Say
from continuity_conformance.target.profile import Profile
from continuity_spec.errors import suggestion

BUNDLED: Final = "reference"


class TargetPlugin(Protocol):
    """What a plugin provides: a target that the kit starts by itself.

    It may also have `any_version = True` (a version that is not among `versions` can be asked for, too) and `any_wheel = True` (so can the path of a wheel).
    """

    @property
    def versions(self) -> Sequence[str]:
        """The versions that `NAME==VERSION` can ask for, the newest last. None: the target has only the one that is there."""

    def profile(self, version: str, say: Say) -> Profile:
        """The profile of a target that is about to be started, installed if need be. `version` is one of `versions`, or empty where there are none."""


def target_names() -> list[str]:
    return sorted({plugin.name for plugin in plugins("target")})


def resolve(target: str | None, profile: Path | Profile | None) -> tuple[Profile, str]:
    """The profile and the address of a target. The address is empty where the kit starts it."""
    if isinstance(profile, Profile):
        return profile, target or ""
    if target is None or "://" not in target:
        return _named(target or BUNDLED, profile), ""
    _must_be_http(target)
    given = _from_file(profile) if profile else Profile(name=urlsplit(target).netloc.rpartition("@")[2])
    return given, target.rstrip("/").removesuffix("/v1")


def _from_file(path: Path) -> Profile:
    from continuity_conformance.target.profile_file import load_profile  # noqa: PLC0415 - most runs have no such file

    return load_profile(path)


def _named(name: str, profile: Path | None) -> Profile:
    if profile is not None:
        given = _from_file(profile)
        if given.process is not None and name in {given.name, BUNDLED}:
            return given
        raise UsageError(
            "A target that is started by name has a profile of its own.",
            where=str(profile),
            do="Give a URL with --target, or add `process:`.",
        )
    name, equals, version = (part.strip() for part in name.partition("=="))
    return _profile(_plugin(name), version, asked=bool(equals))


def _plugin(name: str) -> Plugin:
    found = [plugin for plugin in plugins("target") if plugin.name == name]
    if not found:
        hint = suggestion(name, target_names())
        raise UsageError(
            f'There is no target "{name}".',
            do=f"{hint} A running server is given by its URL: http://127.0.0.1:8000".strip(),
        )
    if found[1:]:
        raise found[1].error(f"its name is taken by the {found[0].title}.", "Uninstall one of the two.")
    return found[0]


def _profile(plugin: Plugin, version: str, *, asked: bool) -> Profile:
    made: TargetPlugin = plugin.create()  # type: ignore[assignment] # it is somebody else's; what it is not shows below
    try:
        known = list(made.versions)
        if asked:
            version = _build(plugin.name, made, version)
        profile = made.profile(version or (known[-1] if known else ""), say)
    except ContinuityError:
        raise
    except Exception as trouble:  # whatever a stranger's plugin does is told in one line
        raise plugin.error(f"it failed: {type(trouble).__name__}: {trouble}.") from trouble
    if not isinstance(profile, Profile):
        raise plugin.error(f"its profile() gives a {type(profile).__name__}.", "It has to give a Profile.")
    return profile


def _build(name: str, made: TargetPlugin, version: str) -> str:
    """What was asked for, if the target takes it: a version as it is, a wheel by its whole path."""
    known, where = list(made.versions), f"{name}=={version}"
    if getattr(made, "any_wheel", False) and version.endswith(".whl"):
        wheel = Path(version).expanduser().resolve()
        if wheel.is_file():
            return str(wheel)
        raise UsageError("There is no such wheel.", where=where, do="Give the path of one that is there.")
    others = getattr(made, "any_version", False)
    if version in known or (others and looks_like(version, known)):
        return version
    do = f"Known versions: {', '.join(known)}." if known else f"Give the name alone: {name}"
    also = " Any other is written like these." if others else ""
    raise UsageError(f'The target {name} has no version "{version}".', where=where, do=do + also)


def say(line: str) -> None:
    """Tell what goes on before a run, beside what it writes."""
    sys.stderr.write(f"continuity: {line}\n")
    sys.stderr.flush()


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

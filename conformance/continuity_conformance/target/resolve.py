"""Targets by name or URL: what `--target` means.

A plugin registers a class under the entry-point group `continuity.targets`; its `profile()` installs what is missing and returns how the target is started
and what it offers. `NAME==VERSION` asks for one of the versions that the plugin lists, or for any other if it allows that (`any_version`, `any_wheel`,
`any_checkout`).
"""

import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

from continuity_conformance.core.entry_points import Plugin, plugins
from continuity_conformance.core.errors import ContinuityError, UsageError
from continuity_conformance.core.rerun import target_arguments
from continuity_conformance.target.build import PROJECT, looks_like
from continuity_conformance.target.install import Say
from continuity_conformance.target.profile import Profile
from continuity_spec.errors import suggestion

BUNDLED: Final = "reference"
_WITHOUT_SCHEME: Final = re.compile(r"[^\s/=]+:[0-9]{1,5}(/\S*)?")
"""An address as people type it: 127.0.0.1:8080, or localhost:8080/v1."""
_BEGIN_OF_A_PATH: Final = ("/", "~", ".")


class TargetPlugin(Protocol):
    """What a plugin provides: a target that the kit starts.

    It may also have `any_version = True` (users may ask for versions that are not among `versions`) `any_wheel = True` (or for the path of a wheel)
    and `any_checkout = True` (or for the path of a folder with a pyproject.toml).
    """

    @property
    def versions(self) -> Sequence[str]:
        """The versions that `NAME==VERSION` can ask for, the newest last. Empty if the target has only one, without a number."""

    def profile(self, version: str, say: Say) -> Profile:
        """Install the target if needed and return its profile. Called once in a run. `version` is one of `versions`, or empty if there are none."""


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """A target that a run can use. `url` is empty if the kit starts the target; `name` is what the user called it."""

    profile: Profile
    url: str
    name: str
    file: str | None = None
    """The profile's file, if there is one."""

    @property
    def arguments(self) -> str:
        """The options that name this target to `continuity run`."""
        return shlex.join(target_arguments(self.name, self.file))


def target_names() -> list[str]:
    return sorted({plugin.name for plugin in plugins("target")})


def resolve(target: str | None, profile: Path | Profile | None = None) -> ResolvedTarget:
    """Find out what a target is. Do this once in a run: a plugin may install something, and makes new keys each time."""
    name = target or BUNDLED
    if isinstance(profile, Profile):
        return ResolvedTarget(profile, target or "", name)
    if target is not None and not target.strip():
        raise UsageError("the address of the target is empty.", do="Write it as http://host:port")
    file = str(profile) if profile is not None else None
    if "://" not in name:
        return ResolvedTarget(_named(name, profile), "", name, file)
    _must_be_http(name)
    loaded = _from_file(profile) if profile else Profile(name=urlsplit(name).netloc.rpartition("@")[2])
    return ResolvedTarget(loaded, name.rstrip("/").removesuffix("/v1"), name, file)


def _from_file(path: Path) -> Profile:
    from continuity_conformance.target.profile_file import load_profile  # noqa: PLC0415 - most runs have no such file

    return load_profile(path)


def _named(name: str, profile: Path | None) -> Profile:
    if profile is not None:
        loaded = _from_file(profile)
        if loaded.process is not None and name in {loaded.name, BUNDLED}:
            return loaded
        if name == BUNDLED and loaded.process is None:
            raise UsageError(
                "this profile does not say how to start the server, and no URL is given.",
                where=str(profile),
                do="Give the URL of the running server, or add `process:` to the profile.",
            )
        raise UsageError(
            "A target that is started by name brings its own profile.",
            where=str(profile),
            do="Give a URL with --target, or add `process:` to the profile.",
        )
    name, equals, version = (part.strip() for part in name.partition("=="))
    return _profile(_plugin(name), version, asked=bool(equals))


def _plugin(name: str) -> Plugin:
    if _WITHOUT_SCHEME.fullmatch(name):
        raise UsageError(f'"{name}" is not a valid address.', do=f"Write it as http://{name}")
    named = [plugin for plugin in plugins("target") if plugin.name == name]
    if not named:
        hint = suggestion(name, target_names())
        raise UsageError(
            f'There is no target "{name}".',
            do=f"{hint} For a running server give its URL: http://127.0.0.1:8000".strip(),
        )
    if named[1:]:
        raise named[1].error(f"its name is taken by the {named[0].title}.", "Uninstall one of the two.")
    return named[0]


def _profile(plugin: Plugin, version: str, *, asked: bool) -> Profile:
    made: TargetPlugin = plugin.create()  # type: ignore[assignment] # third-party code; what is wrong with it shows below
    try:
        known = list(made.versions)
        if asked:
            version = _build(plugin.name, made, version)
        profile = made.profile(version or (known[-1] if known else ""), say)
    except ContinuityError:
        raise
    except Exception as error:  # whatever third-party code raises becomes one line
        raise plugin.error(f"it failed: {type(error).__name__}: {error}.") from error
    if not isinstance(profile, Profile):
        raise plugin.error(f"its profile() returns a {type(profile).__name__}.", "It must return a Profile.")
    return profile


def _build(name: str, made: TargetPlugin, version: str) -> str:
    """The version that the user asked for, if the target allows it; for a wheel or a checkout its absolute path."""
    known, where = list(made.versions), f"{name}=={version}"
    if getattr(made, "any_wheel", False) and version.endswith(".whl"):
        wheel = Path(version).expanduser().resolve()
        if wheel.is_file():
            return str(wheel)
        raise UsageError("There is no such wheel.", where=where, do="Give the path of an existing file.")
    if getattr(made, "any_checkout", False) and version.startswith(_BEGIN_OF_A_PATH):
        folder = Path(version).expanduser().resolve()
        if (folder / PROJECT).is_file():
            return str(folder)
        raise UsageError(f"The folder has no {PROJECT}.", where=where, do="Give the path of a checkout.")
    others = getattr(made, "any_version", False)
    if version in known or (others and looks_like(version, known)):
        return version
    do = f"Known versions: {', '.join(known)}." if known else f"Give the name alone: {name}"
    also = " Other versions must have the same form." if others else ""
    raise UsageError(f'The target {name} has no version "{version}".', where=where, do=do + also)


def say(line: str) -> None:
    """Show what happens before a run, on stderr."""
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
        raise UsageError(f'"{url}" is not a valid address.', do="Write it as http://host:port")

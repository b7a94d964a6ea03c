"""The hunt: the suite played on a mutant, until a requirement fails.

A mutant is a whole server, started as the kit starts any target, which finds one module of its package in a folder of ours.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import TimeoutError as TooLong
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from catalogue import PACKAGE, Mutant, mutated, path_of
from rounds import ONE_PERSON, OPTIONS, SILENT, WHOLE, Lines, Round

from continuity_conformance.checks.registry import CONCLUDING
from continuity_conformance.core.budget import Budget
from continuity_conformance.core.errors import ContinuityError
from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.run.session import Run
from continuity_conformance.target.profile import Limits, Profile
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile
from continuity_spec import Requirement, load_spec

_AT_ONCE: Final = 8
"""Few, so that the first ones end soon."""
STILLBORN: Final = "does not start"
HANGS: Final = "hangs"
UNTESTED: Final = "left untested"
"""Nothing fails, but what passes on the server itself can no longer be tested: the verdict is *incomplete*."""
_TURN_SECONDS: Final = 20.0
_START_SECONDS: Final = 30.0
_ROUND_SECONDS: Final = 120.0
_LITTLE: Final = Budget(examples=4)
_PRELOAD: Final = ("aiohttp.web", "sqlite3", "asyncio")
"""What the server imports and no mutant changes."""

_OPTIONS: Final = {**OPTIONS, SILENT: {"tells": "nothing"}}

_PACKAGE_HERE: Final = '''"""One module of this package is here; the others are where they always are."""
__path__.append({package!r})
'''
_TRACE: Final = """
import os, sys
_out = os.open({lines!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
_seen = set()
def _line(frame, event, _):
    at = frame.f_code.co_filename, frame.f_lineno
    if at not in _seen:
        _seen.add(at)
        os.write(_out, f"{{at[0]}}:{{at[1]}}\\n".encode())
    return _line
def _call(frame, event, _):
    return _line(frame, event, _) if frame.f_code.co_filename.startswith({package!r}) else None
sys.settrace(_call)
"""


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a mutant: the requirement that failed, or how else it was noticed; nothing where it survived."""

    killer: str = ""
    options: str = ""
    seconds: float = 0.0

    @property
    def killed(self) -> bool:
        return bool(self.killer)

    @property
    def again(self) -> list[Round]:
        """What shows it the quickest the next time. An `always` entry shows nothing alone."""
        alone = any(one.id == self.killer and one.always is None for one in load_spec().requirements)
        return [Round(self.options, (self.killer,))] if alone else []


def fate(mutant: Mutant, rounds: Sequence[Round] = WHOLE) -> Fate:
    """Play the rounds until the mutant is noticed."""
    began = time.monotonic()
    with _standing(mutant) as folder:
        for one in filter(lambda one: one.ids, rounds):
            killer = _play(_profile(folder, one.options), one.requirements())
            if killer and (killer, one.options) != (UNTESTED, SILENT):
                return Fate(killer, one.options, round(time.monotonic() - began, 1))
    return Fate(seconds=round(time.monotonic() - began, 1))


def _play(profile: Profile, requirements: Sequence[Requirement], seconds: float = _ROUND_SECONDS) -> str:
    """Which requirement fails first, or what else went wrong with the target; nothing where all is well."""
    run = Run(resolve(None, profile), requirements, _LITTLE)
    seen: set[Verdict] = set()
    try:
        run.open()
        for result in run.as_decided(seconds):
            if result.verdict is Verdict.FAIL:
                return result.id
            if not _needs_others(load_spec().requirement(result.id)):
                seen.add(result.verdict)
    except TooLong:
        return HANGS
    except ContinuityError:
        return STILLBORN
    finally:
        run.close()
    return UNTESTED if seen & {Verdict.NOT_TESTED, Verdict.ERROR} else ""


def _needs_others(requirement: Requirement) -> bool:
    """What is concluded from all that was played is untested in a part of the suite, whatever the server."""
    return requirement.always is not None or requirement.check in CONCLUDING


def reached(one: Round) -> Lines:
    """The lines of the server itself, each with its module, that run in a round. All must be well with it, else a death would say nothing."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        lines = Path(name) / "lines"
        _package(Path(name), _TRACE.format(lines=str(lines), package=str(PACKAGE)))
        trouble = _play(_profile(Path(name), one.options, slowed=5), one.requirements(), 5 * _ROUND_SECONDS)
        assert not trouble, f"{trouble} on the server itself, under the options {one.options}"
        found = (line.rpartition(":") for line in lines.read_text(encoding="utf-8").split())
        return {(_module(Path(file)), int(number)) for file, _, number in found}


def _module(file: Path) -> str:
    return ".".join(file.relative_to(PACKAGE).with_suffix("").parts)


@contextmanager
def _standing(mutant: Mutant) -> Iterator[Path]:
    """A folder in which the server's package has the mutant instead of its module."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        package = _package(Path(name))
        module = path_of(mutant.module)
        if module.parent.name:
            _sub_package(package, module.parent)
        (package / module).write_text(mutated(mutant), encoding="utf-8")
        yield Path(name)


def _sub_package(package: Path, folder: Path) -> None:
    """A folder of the package, which finds its other modules where they always are."""
    (package / folder).mkdir()
    own = (PACKAGE / folder / "__init__.py").read_text(encoding="utf-8")
    (package / folder / "__init__.py").write_text(
        f"__path__.append({str(PACKAGE / folder)!r})\n{own}", encoding="utf-8"
    )


def _package(folder: Path, more: str = "") -> Path:
    package = folder / PACKAGE.name
    package.mkdir()
    (package / "__init__.py").write_text(_PACKAGE_HERE.format(package=str(PACKAGE)) + more, encoding="utf-8")
    return package


def _profile(folder: Path, options: str, slowed: int = 1) -> Profile:
    """The reference server, with a folder of ours before all others, and less patience than with a stranger."""
    profile = _for_one_person() if options == ONE_PERSON else reference_profile(options=_OPTIONS[options])
    assert profile.process is not None
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = replace(
        profile.process,
        env={**profile.process.env, "PYTHONPATH": path},
        seconds=_START_SECONDS * slowed,
        preload=_PRELOAD,
    )
    limits: Limits = replace(profile.limits, turn_seconds=_TURN_SECONDS * slowed, parallel=_AT_ONCE)
    return replace(profile, process=process, limits=limits)


def _for_one_person() -> Profile:
    profile = reference_profile()
    assert profile.process is not None
    start = tuple(word for word in profile.process.start if not word.startswith("--key="))
    return replace(profile, principals={}, process=replace(profile.process, start=start))

"""The installed pytest plugin: it notices `--target` and hands over to the suite.

Every pytest run on the machine loads this module. So it imports nothing of the kit before it is asked, and without `--target` it does nothing.

pytest settles rootdir, settings and addopts before it loads plugins. Hence the hand-over is a second `pytest.main` inside the first, with
settings of its own; the conftest files of the folder that pytest was called in are not loaded at all.
"""

import argparse
import copy
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

SUITE_PLUGIN: Final = "continuity-suite"
"""The name under which the suite's session is registered in the inner run."""
SUITE: Final = Path(__file__).with_name("suite")

_TARGET: Final = "--target"
_OWN_OPTION: Final = re.compile(r"""["']--target["'=]""")


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for, in words."""

    target: str
    profile: str | None
    fail_on: str
    report: str | None
    areas: tuple[str, ...]
    release: str | None
    baseline: str | None
    accept_untested: bool
    examples: int | None
    seed: int | None
    own: tuple[str, ...]
    """The arguments of the command line and of PYTEST_ADDOPTS; those of a settings file are for that folder's own tests."""
    words: tuple[str, ...]
    """The arguments that are no options: they name requirements."""


_REQUEST: Final = pytest.StashKey[Request]()
_OWNER: Final = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare what has our prefix. `--target` itself is declared only when it is used, so that it is in nobody's way."""
    group = parser.getgroup("continuity", "session continuity (conformance of a server that keeps conversations)")
    group.addoption(
        "--continuity-target",
        dest="continuity_target",
        metavar="URL|NAME",
        help="the same as --target, for projects where --target is an option of their own",
    )
    group.addoption(
        "--continuity-profile",
        dest="continuity_profile",
        metavar="FILE",
        help="what the URL alone cannot tell about the target",
    )
    group.addoption(
        "--continuity-fail-on",
        dest="continuity_fail_on",
        type=str.upper,
        choices=("MUST", "SHOULD"),
        default="MUST",
        help="the level whose failures fail the run (default: MUST; a failed SHOULD warns)",
    )
    group.addoption(
        "--continuity-report",
        dest="continuity_report",
        metavar="DIR",
        help="write the report in every format to this folder (default: write nothing)",
    )
    _add_gate_options(group)


def _add_gate_options(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--continuity-baseline",
        dest="continuity_baseline",
        metavar="FILE",
        help="failures that are known: they do not fail the run until their day; one that passes again does",
    )
    group.addoption(
        "--continuity-accept-untested",
        dest="continuity_accept_untested",
        action="store_true",
        help="let the run through though something could not be tested; the verdict stays incomplete",
    )
    group.addoption(
        "--continuity-area",
        dest="continuity_area",
        action="append",
        default=[],
        metavar="AREA",
        help="only these areas (SLUG, or SLUG,ECHO; may be given again); a part is never conformant",
    )
    group.addoption(
        "--continuity-release",
        dest="continuity_release",
        metavar="NAME",
        help="the release of the spec to hold the target to (default: the newest, and drafts)",
    )
    group.addoption(
        "--continuity-examples",
        dest="continuity_examples",
        type=int,
        metavar="N",
        help="how many made-up requests each operation and property is tried with",
    )
    group.addoption(
        "--continuity-seed",
        dest="continuity_seed",
        type=int,
        metavar="S",
        help="where made-up requests come from (the default is always the same)",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser, args: list[str]) -> None:
    """Before any conftest.py is loaded: is this a run of ours? Then none of this folder will be."""
    if _asks_for_target(args):
        owner = _owner_of_target(early_config, parser)
        if owner:
            early_config.stash[_OWNER] = owner
    known = parser.parse_known_args(args, namespace=copy.copy(early_config.option))
    if known.continuity_target is None or early_config.pluginmanager.has_plugin(SUITE_PLUGIN):
        return
    request = _request(early_config, parser, known)
    early_config.stash[_REQUEST] = request
    args[:] = [*request.own, str(SUITE)]
    known.file_or_dir = [str(SUITE)]
    known.confcutdir = str(SUITE)
    early_config.known_args_namespace = known


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Hand over to the suite. The outer run ends here: none of its plugins was configured, nothing was collected."""
    request = config.stash.get(_REQUEST, None)
    if request is None or config.option.help or config.option.version:
        return None
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        # Otherwise the outer run holds on to stdin, and --pdb dies in the inner one.
        capture.suspend_global_capture(in_=True)
    # Imported here because every pytest run on the machine imports this module.
    from continuity_conformance.pytest.launch import launch_from_pytest  # noqa: PLC0415

    return launch_from_pytest(request, config)


def pytest_report_header(config: pytest.Config) -> str | None:
    owner = config.stash.get(_OWNER, "")
    if not owner or _REQUEST in config.stash or config.pluginmanager.has_plugin(SUITE_PLUGIN):
        return None
    return f"continuity: --target belongs to {owner} here. To check a server use --continuity-target."


def _request(config: pytest.Config, parser: pytest.Parser, known: argparse.Namespace) -> Request:
    own = config.invocation_params.args
    words = parser.parse_known_args(own, namespace=copy.copy(config.option)).file_or_dir
    return Request(
        target=known.continuity_target,
        profile=known.continuity_profile,
        fail_on=known.continuity_fail_on,
        report=known.continuity_report,
        areas=tuple(known.continuity_area),
        release=known.continuity_release,
        baseline=known.continuity_baseline,
        accept_untested=known.continuity_accept_untested,
        examples=known.continuity_examples,
        seed=known.continuity_seed,
        own=(*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *own),
        words=tuple(words),
    )


def _asks_for_target(args: Sequence[str]) -> bool:
    """`--help` shows the option too."""
    return any(arg in {_TARGET, "--help", "-h"} or arg.startswith(f"{_TARGET}=") for arg in args)


def _owner_of_target(config: pytest.Config, parser: pytest.Parser) -> str:
    """Who else has an option of this name. Where nobody does, it becomes ours."""
    conftest = next((path for path in _conftests(config) if _declares_target(path)), None)
    if conftest is not None:
        return str(conftest)
    try:
        parser.getgroup("continuity").addoption(
            _TARGET,
            dest="continuity_target",
            metavar="URL|NAME",
            help="the server to check: the URL of a running one, or the name of one that a plugin starts (reference)",
        )
    except (ValueError, argparse.ArgumentError):
        return "another plugin"
    return ""


def _conftests(config: pytest.Config) -> Iterator[Path]:
    """Find the conftest files that pytest would load at the start. They are only read: one may raise when imported."""
    here = config.invocation_params.dir
    named = [here / str(word).partition("::")[0] for word in config.known_args_namespace.file_or_dir]
    folders = [here, config.rootpath, *(here / path for path in config.getini("testpaths")), *named]
    for folder in dict.fromkeys(folders):
        yield from (parent / "conftest.py" for parent in folder.parents if config.rootpath in (parent, *parent.parents))
        yield folder / "conftest.py"
        yield from folder.glob("test*/conftest.py")


def _declares_target(conftest: Path) -> bool:
    try:
        return _OWN_OPTION.search(conftest.read_text(encoding="utf-8", errors="replace")) is not None
    except OSError:
        return False

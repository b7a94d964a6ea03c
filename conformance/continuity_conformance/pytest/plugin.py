"""The installed pytest plugin: it notices `--target` and hands over to the suite.

Every pytest run on the machine loads this module. So it imports only the option table of the kit, and without `--target` it does nothing.

pytest settles rootdir, settings and addopts before it loads plugins. So the suite runs in a second `pytest.main` inside the first one, with settings of
its own; the conftest files of the folder that pytest was called in are not loaded.
"""

import argparse
import copy
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from continuity_conformance.pytest.options import (
    SUITE,
    SUITE_PLUGIN,
    SuiteRequest,
    add_options,
    add_target,
    values,
)

_TARGET: Final = "--target"
_DECLARED_TARGET: Final = r"""["']--target["'=]"""

_REQUEST: Final = pytest.StashKey[SuiteRequest]()
_OWNER: Final = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options with our prefix. `--target` is declared only when it is used, so that other projects can have one."""
    add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser, args: list[str]) -> None:
    """Before any conftest.py is loaded: if this run is ours, load none of this folder."""
    if _asks_for_target(args):
        owner = _owner_of_target(early_config, parser)
        if owner:
            early_config.stash[_OWNER] = owner
    known = parser.parse_known_args(args, namespace=copy.copy(early_config.option))
    if known.continuity_target is None or early_config.pluginmanager.has_plugin(SUITE_PLUGIN):
        return
    request = _request(early_config, parser, known)
    early_config.stash[_REQUEST] = request
    args[:] = [*request.arguments, str(SUITE)]
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
        # Otherwise the outer run keeps stdin, and --pdb fails in the inner one.
        capture.suspend_global_capture(in_=True)
    from continuity_conformance.pytest.launch import launch_from_pytest  # noqa: PLC0415 - it is the whole kit; every pytest run on the machine imports this module

    return launch_from_pytest(request, config)


def pytest_report_header(config: pytest.Config) -> str | None:
    owner = config.stash.get(_OWNER, "")
    if not owner or _REQUEST in config.stash or config.pluginmanager.has_plugin(SUITE_PLUGIN):
        return None
    return f"continuity: --target belongs to {owner} here. To check a server use --continuity-target."


def _request(config: pytest.Config, parser: pytest.Parser, known: argparse.Namespace) -> SuiteRequest:
    own = config.invocation_params.args
    words = parser.parse_known_args(own, namespace=copy.copy(config.option)).file_or_dir
    arguments = (*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *own)
    return SuiteRequest(values(known), arguments, tuple(words))


def _asks_for_target(args: Sequence[str]) -> bool:
    """`--help` shows the option too."""
    return any(arg in {_TARGET, "--help", "-h"} or arg.startswith(f"{_TARGET}=") for arg in args)


def _owner_of_target(config: pytest.Config, parser: pytest.Parser) -> str:
    """Who else declares `--target`. If nobody does, declare it ourselves."""
    conftest = next((path for path in _conftests(config) if _declares_target(path)), None)
    if conftest is not None:
        return str(conftest)
    try:
        add_target(parser)
    except (ValueError, argparse.ArgumentError):
        return "another plugin"
    return ""


def _conftests(config: pytest.Config) -> Iterator[Path]:
    """The conftest files that pytest would load at the start. They are only read: importing one may raise."""
    here = config.invocation_params.dir
    named = [here / str(word).partition("::")[0] for word in config.known_args_namespace.file_or_dir]
    folders = [here, config.rootpath, *(here / path for path in config.getini("testpaths")), *named]
    for folder in dict.fromkeys(folders):
        yield from (parent / "conftest.py" for parent in folder.parents if config.rootpath in (parent, *parent.parents))
        yield folder / "conftest.py"
        yield from folder.glob("test*/conftest.py")


def _declares_target(conftest: Path) -> bool:
    try:
        return re.search(_DECLARED_TARGET, conftest.read_text(encoding="utf-8", errors="replace")) is not None
    except OSError:
        return False

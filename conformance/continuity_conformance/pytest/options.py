"""The options of `pytest --continuity-…`, and what the plugin, the launch and the session share.

Every pytest run on the machine imports this module: it knows the option table and nothing else of the kit.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from continuity_conformance.core import option_table
from continuity_conformance.core.option_table import RUN_OPTIONS, TARGET

SUITE: Final = Path(__file__).with_name("suite")
SUITE_PLUGIN: Final = "continuity-suite"
"""The name under which the suite's session is registered in the inner run."""

_PREFIX: Final = "continuity_"
_GROUP: Final = "continuity"


class SuiteRequest(NamedTuple):
    """What a user of pytest asked for. `values`: of the option table. `words`: the arguments that name requirements."""

    values: Mapping[str, Any]
    arguments: tuple[str, ...]
    """The arguments of the command line and of PYTEST_ADDOPTS. Those of a settings file belong to that folder's own tests."""
    words: tuple[str, ...]


def add_options(parser: pytest.Parser) -> None:
    """Declare all options with our prefix."""
    group = parser.getgroup(_GROUP, "session continuity (conformance of a server that keeps conversations)")
    group.addoption(
        "--continuity-target",
        dest=_PREFIX + TARGET.attribute,
        metavar=TARGET.metavar,
        help="the same as --target, for projects that have a --target of their own",
    )
    for option in RUN_OPTIONS:
        group.addoption(f"--continuity-{option.name}", dest=_PREFIX + option.attribute, **option.keywords())


def add_target(parser: pytest.Parser) -> None:
    """Declare `--target`. Raises ValueError or argparse.ArgumentError where the name is taken."""
    parser.getgroup(_GROUP).addoption("--target", dest=_PREFIX + TARGET.attribute, **TARGET.keywords())


def values(namespace: argparse.Namespace) -> Mapping[str, Any]:
    return option_table.values(namespace, _PREFIX)

"""Arguments that several commands share. The options of a run come from the kit's one table, as those of pytest do."""

import argparse
from typing import Final

from continuity_conformance.core.budget import Budget
from continuity_conformance.core.option_table import RUN_OPTIONS, TARGET, option
from continuity_conformance.target.resolve import BUNDLED

_TARGET_HELP: Final = f"{TARGET.help} (default: {BUNDLED})"


def add_target(parser: argparse.ArgumentParser) -> None:
    """TARGET as the first argument."""
    parser.add_argument("target", nargs="?", default=BUNDLED, metavar="TARGET", help=_TARGET_HELP)


def add_target_option(parser: argparse.ArgumentParser) -> None:
    """`--target`, for a command whose arguments are something else."""
    parser.add_argument("--target", default=BUNDLED, metavar=TARGET.metavar, help=_TARGET_HELP)


def add_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Some options of a run."""
    for name in names:
        parser.add_argument(f"--{name}", **option(name).keywords())


def add_run_options(parser: argparse.ArgumentParser) -> dict[str, "argparse._ArgumentGroup"]:
    """All options of a run. Returns the groups of the help by title, so that a command can add its own options to them."""
    groups: dict[str, argparse._ArgumentGroup] = {}
    for each in RUN_OPTIONS:
        if each.group and each.group not in groups:
            groups[each.group] = parser.add_argument_group(each.group)
        (groups[each.group] if each.group else parser).add_argument(f"--{each.name}", **each.keywords())
    return groups


def budget_of(options: argparse.Namespace) -> Budget:
    return Budget(options.examples, options.seed)

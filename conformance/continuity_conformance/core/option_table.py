"""The options of a run, each stated once: `pytest --continuity-NAME` and `continuity check --NAME` are declared from this table.

A new option also needs a field in `RunOptions` (core/run_options.py).

Every pytest run on the machine imports this module, so it imports the standard library only, and has no dataclass, which takes a millisecond to make.
"""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

DEFAULT_EXAMPLES: Final = 12
DEFAULT_SEED: Final = 1

_LAST_PORT: Final = 65535
SELECTION: Final = "a part of the release"
GATE: Final = "what counts"


def at_least_one(text: str) -> int:
    """Read a positive number, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("a number of at least 1")
    return number


def port(text: str) -> int:
    """Read the number of a port, for argparse; 0 takes any free one."""
    number = int(text)
    if not 0 <= number <= _LAST_PORT:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to {_LAST_PORT}")
    return number


def seconds(text: str) -> float:
    """Read a time that is not negative, for argparse."""
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError("a number of seconds, 0 or more")
    return number


class Option(NamedTuple):
    """One option. One without a `metavar` and `choices` takes no value: it is a switch."""

    name: str
    help: str
    metavar: str = ""
    type: Callable[[str], Any] = str
    choices: tuple[str, ...] = ()
    default: Any = None
    repeatable: bool = False
    group: str = ""
    """The title under which the command line's help lists it."""

    @property
    def attribute(self) -> str:
        """The name of its value in a namespace of argparse."""
        return self.name.replace("-", "_")

    def keywords(self) -> dict[str, Any]:
        """What `add_argument` of argparse and `addoption` of pytest take beside the option's name."""
        if not self.metavar and not self.choices:
            return {"action": "store_true", "help": self.help}
        given: dict[str, Any] = {"type": self.type, "default": self.default, "help": self.help}
        if self.metavar:
            given["metavar"] = self.metavar
        if self.choices:
            given["choices"] = self.choices
        if self.repeatable:
            given |= {"action": "append", "default": []}
        return given


TARGET: Final = Option(
    "target",
    "the URL of a running server, or the name of one that a plugin starts, such as reference",
    metavar="URL|NAME",
)
"""Declared by each command in its own way: `--target`, or the first argument."""

RUN_OPTIONS: Final = (
    Option(
        "profile",
        "a file that describes the target: keys, options, limits, how it is started",
        metavar="FILE",
        type=Path,
    ),
    Option(
        "report",
        "write the report in every format to this folder (default: write nothing)",
        metavar="DIR",
        type=Path,
    ),
    Option(
        "wait",
        "wait up to this many seconds until the target answers, such as one that was just started (default: 0)",
        metavar="S",
        type=seconds,
        default=0.0,
    ),
    Option(
        "class",
        "only these conformance classes and those that they require (Core, or Core,Recovery); the verdict is about them",
        metavar="CLASS",
        repeatable=True,
        group=SELECTION,
    ),
    Option(
        "area",
        "only this area (SLUG, or SLUG,ECHO; may be repeated); never conformant",
        metavar="AREA",
        repeatable=True,
        group=SELECTION,
    ),
    Option(
        "release",
        "the release of the spec to check against (default: the newest, and drafts)",
        metavar="NAME",
        group=GATE,
    ),
    Option(
        "fail-on",
        "the lowest level whose failures fail the run (default: MUST; a failed SHOULD only warns then)",
        type=str.upper,
        choices=("MUST", "SHOULD"),
        default="MUST",
        group=GATE,
    ),
    Option(
        "baseline",
        "a file of known failures with reason and date: they do not fail the run until then; one that passes again does",
        metavar="FILE",
        type=Path,
        group=GATE,
    ),
    Option(
        "accept-untested",
        "exit code 0 instead of 5 if something could not be tested; the verdict stays incomplete",
        group=GATE,
    ),
    Option(
        "examples",
        f"how many generated requests each operation and property is tried with (default: {DEFAULT_EXAMPLES})",
        metavar="N",
        type=at_least_one,
        default=DEFAULT_EXAMPLES,
    ),
    Option(
        "seed",
        f"the seed of the generated requests (default: {DEFAULT_SEED})",
        metavar="S",
        type=int,
        default=DEFAULT_SEED,
    ),
)


def option(name: str) -> Option:
    return next(each for each in RUN_OPTIONS if each.name == name)


def values(namespace: argparse.Namespace, prefix: str = "") -> Mapping[str, Any]:
    """The parsed value of every option of a run, and of the target, by attribute name."""
    return {each.attribute: getattr(namespace, prefix + each.attribute) for each in (TARGET, *RUN_OPTIONS)}

"""`continuity defects`: the defects that the bundled server can be started with, and what fails on each."""

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import asdict

from continuity_conformance.suite import matrix
from continuity_conformance.suite.defects import ListedDefect, defects, find
from continuity_conformance.terminal.output import say, say_json, width
from continuity_spec import load_spec

_WIDE = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = """\
A defect is the bundled server with one rule broken. It proves that a check can
fail: each requirement names the defects made to break it, and the kill matrix
lists which requirements fail on which defect, at which step and expectation.
On each defect only the areas that it was made for were played, and of the costly
requirements only those that it was made for; other cells are empty.

  continuity defects                       all of them, in one sentence each
  continuity defects history-doubles       one: how to start it, what fails on it
  continuity defects --matrix              the kill matrix, one block for each defect
  continuity defects --matrix --by requirement
                                           what each requirement catches
  continuity serve --defect history-doubles
"""
    parser.add_argument("names", nargs="*", metavar="NAME", help="a defect (default: all)")
    parser.add_argument("--matrix", action="store_true", help="what fails on each defect, and where first")
    parser.add_argument(
        "--by", choices=("defect", "requirement"), default="defect", help="how to sort the matrix (default: defect)"
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON; with --matrix the measured data")


def run(options: argparse.Namespace) -> int:
    known = defects()
    wanted = {name: find(name, known) for name in options.names} or known
    if options.matrix:
        _matrix(wanted, options)
    elif options.json:
        say_json([asdict(defect) for defect in wanted.values()])
    else:
        say("\n".join(_described(wanted) if options.names else _listed(wanted.values())))
    return 0


def _matrix(wanted: Mapping[str, ListedDefect], options: argparse.Namespace) -> None:
    requirements = load_spec().requirements
    rows = {name: row for name, row in matrix.published().items() if name in wanted}
    caught = matrix.transposed(rows, requirements)
    if options.json:
        say_json(caught if options.by == "requirement" else rows)
    elif options.by == "requirement":
        shown = [each for each in requirements if caught[each.id] or not options.names]
        say("\n".join(matrix.by_requirement(rows, shown, _columns())))
    else:
        say("\n".join(matrix.by_defect(rows, wanted, requirements, _columns())))


def _listed(wanted: Iterable[ListedDefect]) -> Iterable[str]:
    for defect in wanted:
        yield from (defect.name, *matrix.wrapped("    ", defect.cited, _columns()))


def _described(wanted: Mapping[str, ListedDefect]) -> Iterable[str]:
    rows, requirements = matrix.published(), load_spec().requirements
    for number, (name, defect) in enumerate(wanted.items()):
        yield from [""] * bool(number)
        yield from matrix.described(defect, rows.get(name), matrix.made_for(name, requirements), _columns())


def _columns() -> int:
    return min(width(), _WIDE)

"""`--examples` and `--seed`: the same for every command that makes up data."""

import argparse

from continuity_conformance.core.budget import DEFAULT_EXAMPLES, DEFAULT_SEED, Budget


def add_budget_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--examples",
        type=at_least_one,
        default=DEFAULT_EXAMPLES,
        metavar="N",
        help="how many made-up requests each operation and property is tried with (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", type=int, default=DEFAULT_SEED, metavar="S", help="where they come from (default: %(default)s)"
    )


def at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("a number of at least 1")
    return number


def budget_of(options: argparse.Namespace) -> Budget:
    return Budget(options.examples, options.seed)

"""TARGET and `--profile`: the same for every command that plays on a target."""

import argparse
from pathlib import Path


def add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target",
        nargs="?",
        default="reference",
        metavar="TARGET",
        help="the URL of a running server, or the name of one that a plugin starts (default: reference)",
    )
    add_profile(parser)


def add_profile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", type=Path, metavar="FILE", help="what the URL alone cannot tell about the target")

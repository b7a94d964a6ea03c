"""`continuity report`: every format of a report, made again from results.json."""

import argparse
import sys
from pathlib import Path

from continuity_conformance.report.files import write


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", type=Path, metavar="results.json")
    parser.add_argument("--to", type=Path, metavar="DIR", help="the folder to write to (default: that of results.json)")


def run(options: argparse.Namespace) -> int:
    for path in write(options.results, options.to or options.results.parent):
        sys.stdout.write(f"{path}\n")
    return 0

"""`continuity checklist`: what to build and what to review, ticked from results."""

import argparse
import sys
from pathlib import Path

from continuity_conformance.report import checklist
from continuity_conformance.results.read import read
from continuity_conformance.suite.release import newest
from continuity_conformance.terminal.output import warn


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--results", type=Path, metavar="FILE", help="tick what passed in this results.json")
    parser.add_argument("--format", choices=("md", "html"), default="md", help="default: md")


def run(options: argparse.Namespace) -> int:
    if options.results is not None:
        made = checklist.from_report(read(options.results))
    else:
        release = newest()
        warn(release.packs.broken)
        made = checklist.from_spec(release.requirements, release.name)
    sys.stdout.write(checklist.as_html(made) if options.format == "html" else checklist.as_markdown(made))
    return 0

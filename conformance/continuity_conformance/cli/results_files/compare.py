"""`continuity compare`: several runs side by side, and what regressed."""

import argparse
import sys
from pathlib import Path

from continuity_conformance.core.errors import UsageError
from continuity_conformance.report import compare
from continuity_conformance.results.read import read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", type=Path, nargs="+", metavar="results.json", help="two or more, the oldest first")
    parser.add_argument("--format", choices=("text", "md", "html"), default="text", help="default: text")


def run(options: argparse.Namespace) -> int:
    """Exit code 1 if something that passed no longer does."""
    if len(options.results) == 1:
        raise UsageError("one run cannot be compared.", do="Name two or more results.json.")
    made = compare.compare([read(path) for path in options.results], [str(path) for path in options.results])
    formats = {"text": compare.as_text, "md": compare.as_markdown, "html": compare.as_html}
    sys.stdout.write(formats[options.format](made))
    return 1 if made.regressed else 0

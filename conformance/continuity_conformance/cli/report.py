"""`continuity report`, `checklist` and `compare`: what is made from results.json, without a target."""

import argparse
import sys
from pathlib import Path

from continuity_conformance.terminal.output import complain


def report_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", type=Path, metavar="results.json")
    parser.add_argument("--to", type=Path, metavar="DIR", help="the folder to write to (default: that of results.json)")


def report(options: argparse.Namespace) -> int:
    """Make all formats again."""
    # Imported here and below because `--help` is quick without them.
    from continuity_conformance.report.files import write  # noqa: PLC0415

    for path in write(options.results, options.to or options.results.parent):
        sys.stdout.write(f"{path}\n")
    return 0


def checklist_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--results", type=Path, metavar="FILE", help="tick what passed in this results.json")
    parser.add_argument("--format", choices=("md", "html"), default="md", help="default: md")


def checklist(options: argparse.Namespace) -> int:
    from continuity_conformance.report import checklist  # noqa: PLC0415
    from continuity_conformance.results import read as model  # noqa: PLC0415
    from continuity_conformance.suite.release import newest  # noqa: PLC0415

    if options.results is not None:
        made = checklist.from_report(model.read(options.results))
    else:
        release = newest()
        complain(release.packs.broken)
        made = checklist.from_spec(release.requirements, release.name)
    sys.stdout.write(checklist.as_html(made) if options.format == "html" else checklist.as_markdown(made))
    return 0


def compare_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", type=Path, nargs="+", metavar="results.json", help="two or more, the oldest first")
    parser.add_argument("--format", choices=("text", "md", "html"), default="text", help="default: text")


def compare(options: argparse.Namespace) -> int:
    """End with 1 where something that passed no longer does."""
    from continuity_conformance.core.errors import UsageError  # noqa: PLC0415
    from continuity_conformance.report import compare  # noqa: PLC0415
    from continuity_conformance.results import read as model  # noqa: PLC0415

    if len(options.results) == 1:
        raise UsageError("one run has nothing to be compared with.", do="Name two or more results.json.")
    made = compare.compare([model.read(path) for path in options.results], [str(path) for path in options.results])
    forms = {"text": compare.as_text, "md": compare.as_markdown, "html": compare.as_html}
    sys.stdout.write(forms[options.format](made))
    return 1 if made.regressed else 0

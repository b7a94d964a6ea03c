"""`continuity diagnose`: the causes of the failures of an earlier run, and an issue for each of them."""

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from continuity_conformance.core.errors import KitError
from continuity_conformance.core.files import replace_file
from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.report import issue
from continuity_conformance.results.cause_text import heading
from continuity_conformance.results.read import diagnosed, read
from continuity_conformance.results.recorded import Report
from continuity_conformance.terminal.causes import cause_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", type=Path, metavar="results.json")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument("--issues", type=Path, metavar="DIR", help="write an issue for each cause into this folder")


def run(options: argparse.Namespace) -> int:
    report = diagnosed(read(options.results))
    if options.format == "json":
        json.dump([dataclasses.asdict(cause) for cause in report.causes], sys.stdout, ensure_ascii=False, indent=2)
        sys.stdout.write("\n")
    else:
        sys.stdout.write("\n".join(_lines(report)) + "\n")
    if options.issues:
        _write_issues(report, options.issues)
    return 0


def _lines(report: Report) -> list[str]:
    failures = len(report.with_verdict(Verdict.FAIL))
    if not failures:
        return ["Nothing failed, so there is no cause to look for."]
    return [f"{heading(report.causes, failures)}:", *cause_lines(report.causes, whole=True)]


def _write_issues(report: Report, folder: Path) -> None:
    reason = issue.why_none(report)
    if reason:
        sys.stderr.write(f"No issue is written: {reason}.\n")
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, cause in enumerate(report.causes, 1):
            path = folder / issue.file_name(number, cause)
            replace_file(path, issue.render(cause, report))
            sys.stderr.write(f"{path}\n")
    except OSError as error:
        raise KitError(
            f"the issues cannot be written ({error.strerror}).",
            where=str(folder),
            do="Name a folder that you may write to.",
        ) from None

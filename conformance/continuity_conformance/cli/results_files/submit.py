"""`continuity submit`: checks that results are fit to be listed beside those of other servers, and writes the files for a pull request."""

import argparse
import json
import sys
from pathlib import Path

from continuity_conformance.core.errors import UsageError
from continuity_conformance.report.submission import DAYS, now, problems, submission
from continuity_conformance.results.read import read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"""\
Failing and partly tested results are welcome: a list of perfect servers helps
nobody. What is demanded: the whole release was run to its end, the file is as the
run wrote it (its digest), the target's name ends in a version, and the run is
not older than {DAYS} days. Keys are in no results; transcripts of passes, and where
your machine has its files, are left out. Nothing is sent anywhere.
"""
    parser.add_argument("results", type=Path, metavar="results.json")
    parser.add_argument(
        "--to",
        type=Path,
        default=Path("docs/results"),
        metavar="DIR",
        help="where the folder is made (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    read(options.results)  # raises where the file is not results of a run
    data = json.loads(options.results.read_text(encoding="utf-8"))
    found = list(problems(data, now()))
    if found:
        raise UsageError(" ".join(found), where=str(options.results))
    made = submission(data)
    folder = options.to / made.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in made.files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"it cannot be written ({error.strerror}).", where=str(folder), do="Name another with --to."
        ) from None
    sys.stdout.writelines(f"{folder / name}\n" for name in made.files)
    sys.stdout.write(
        "Next: `python tools/published_results/publish.py` writes the pages. Then open a pull request with both.\n"
    )
    return 0

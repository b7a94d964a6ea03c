"""`continuity spec list | show | lint`: the requirements themselves, without a target."""

import argparse
import json
import shutil
import sys
from pathlib import Path

from continuity_spec import listing, load
from continuity_spec.loader import BUNDLED


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="every requirement of the spec in one line")
    listing.add_argument("--json", action="store_true", help="as JSON, with all fields")
    listing.set_defaults(action=_list)
    show = actions.add_parser("show", help="what a requirement demands, why, and how it is checked")
    show.add_argument("ids", nargs="+", metavar="ID")
    show.set_defaults(action=_show)
    lint = actions.add_parser("lint", help="check requirement files: form, words, names, English")
    lint.add_argument("files", nargs="*", type=Path, metavar="FILE", help="default: the spec's own")
    lint.set_defaults(action=_lint)


def spec(options: argparse.Namespace) -> int:
    code: int = options.action(options)
    return code


def _list(options: argparse.Namespace) -> int:
    whole = load()
    rows = json.dumps(listing.as_rows(whole), ensure_ascii=False, indent=2) if options.json else ""
    _say(rows or listing.as_table(whole, _width()))
    return 0


def _show(options: argparse.Namespace) -> int:
    whole = load()
    _say("\n\n".join(listing.show(whole, wanted.upper(), _width()) for wanted in options.ids))
    return 0


def _lint(options: argparse.Namespace) -> int:
    from continuity_conformance.checks import CHECKS  # noqa: PLC0415 - the other actions need no HTTP

    bundled = () if options.files else load().requirements
    problems = listing.lint(options.files or sorted((BUNDLED / "requirements").glob("*.yaml")))
    problems += [
        f'{entry.place}: there is no check "{entry.check}". Known checks: {", ".join(sorted(CHECKS))}'
        for entry in bundled
        if entry.check is not None and entry.check not in CHECKS
    ]
    _say("\n".join(problems) or "nothing to report")
    return 1 if problems else 0


def _width() -> int:
    return shutil.get_terminal_size().columns


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")

"""`continuity spec list | show | lint`: the requirements themselves, without a target."""

import argparse
import json
import sys
from pathlib import Path


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
    from continuity_spec import listing, load  # noqa: PLC0415

    if options.json:
        _say(json.dumps(listing.as_rows(load()), ensure_ascii=False, indent=2))
    else:
        _say(listing.as_table(load()))
    return 0


def _show(options: argparse.Namespace) -> int:
    from continuity_spec import listing, load  # noqa: PLC0415

    whole = load()
    _say("\n\n".join(listing.show(whole.requirement(wanted.upper())) for wanted in options.ids))
    return 0


def _lint(options: argparse.Namespace) -> int:
    from continuity_spec import listing  # noqa: PLC0415

    problems = listing.lint(options.files)
    _say("\n".join(str(problem) for problem in problems) or "nothing to report")
    return 1 if problems else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text.rstrip()}\n")

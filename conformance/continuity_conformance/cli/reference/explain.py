"""`continuity explain`: everything about a requirement in one document, for people and for programs."""

import argparse

from continuity_conformance.suite import explanation
from continuity_conformance.suite.packs import installed, whole_spec
from continuity_conformance.terminal.output import say, say_json, warn


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", nargs="+", metavar="ID", help="a requirement, such as HISTORY-02")
    parser.add_argument("--json", action="store_true", help="as JSON: a list with one object for each id")


def run(options: argparse.Namespace) -> int:
    warn(installed().broken)
    spec = whole_spec()
    wanted = [spec.requirement(identity.upper()) for identity in options.ids]
    if options.json:
        say_json([explanation.as_json(each) for each in wanted])
    else:
        say("\n".join(explanation.as_markdown(each) for each in wanted).rstrip())
    return 0

"""`continuity model`: the probe model alone, for a server that is started by hand."""

import argparse

from continuity_conformance.probe import server as probe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=0, metavar="N", help="default: any free port")


def run(options: argparse.Namespace) -> int:
    probe.serve(options.port)
    return 0

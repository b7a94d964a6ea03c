"""The reference of the command line, from the parsers themselves."""

import argparse
import os
from collections.abc import Iterator
from unittest import mock

from continuity_conformance.cli.main import COMMANDS, parser_for
from continuity_server.settings import _parser as server_parser

PAGE = "reference/commands.md"
_COLUMNS = "100"
_INTRODUCTION = """\
# Commands

What `continuity COMMAND --help` prints. `session-continuity` is another name of `continuity`.
"""


def pages() -> dict[str, str]:
    with mock.patch.dict(os.environ, {"COLUMNS": _COLUMNS, "NO_COLOR": "1"}):
        return {
            PAGE: "\n".join(
                (
                    _INTRODUCTION,
                    *_help("continuity", parser_for(None)),
                    *(line for name in COMMANDS for line in _command(name)),
                )
            )
        }


def _command(name: str) -> Iterator[str]:
    title = f"continuity {name}"
    if name == "serve":
        yield from _help(title, server_parser())
        return
    own = subparsers(parser_for(name))[name]
    yield from _help(title, own)
    for action, inner in subparsers(own).items():
        yield from _help(f"{title} {action}", inner, level=3)


def subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of the commands of a parser, by name."""
    found = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001 - argparse has no public way
    return dict(found[0].choices) if found else {}


def _help(title: str, parser: argparse.ArgumentParser, level: int = 2) -> Iterator[str]:
    yield from (f"{'#' * level} {title}", "", "```text", parser.format_help().rstrip(), "```", "")

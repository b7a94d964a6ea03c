"""`continuity spec openapi`: print the OpenAPI document of the contract, in the form that a tool needs."""

import argparse
from typing import Final

from continuity_conformance.core.errors import UsageError
from continuity_conformance.terminal.output import say
from continuity_spec.openapi.builds import VERSIONS, as_yaml, in_version_3_2, is_field_name, overlay_text, with_header
from continuity_spec.openapi.document import DOCUMENTED_HEADER, document_text, load_control, load_openapi

_NEWEST: Final = "3.2"


def add_action(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the action to `continuity spec`."""
    parser = actions.add_parser("openapi", help="print the OpenAPI document of the contract")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--control", action="store_true", help="the document of the control API instead")
    which.add_argument(
        "--overlay", metavar="NAME", help="an Overlay that gives the continuity header this name instead"
    )
    parser.add_argument(
        "--header", metavar="NAME", help=f"the name of the continuity header (default: {DOCUMENTED_HEADER})"
    )
    parser.add_argument(
        "--version", choices=VERSIONS, default=VERSIONS[0], help="the version of OpenAPI (default: %(default)s)"
    )
    parser.set_defaults(action=_print)


def _print(options: argparse.Namespace) -> int:
    for name in filter(None, (options.header, options.overlay)):
        _check_name(name)
    say(_text(options).rstrip("\n"))
    return 0


def _text(options: argparse.Namespace) -> str:
    if options.overlay:
        return overlay_text(options.overlay)
    if not options.header and options.version != _NEWEST:
        return document_text("control.yaml" if options.control else "openapi.yaml")
    document = with_header(load_control() if options.control else load_openapi(), options.header or DOCUMENTED_HEADER)
    return as_yaml(in_version_3_2(document) if options.version == _NEWEST else document)


def _check_name(name: str) -> None:
    if not is_field_name(name):
        raise UsageError(f'"{name}" is no name of a header.', do="Use letters, digits and hyphens.")

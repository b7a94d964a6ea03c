"""`continuity spec list | show | lint | prose | vectors | openapi`: the spec itself, without a target."""

import argparse
import json
import sys
from pathlib import Path
from typing import Final

from continuity_conformance.cli.reference import spec_openapi
from continuity_conformance.core.errors import UsageError
from continuity_conformance.suite.defects import defects
from continuity_conformance.suite.packs import Packs, installed, known_checks, whole_spec
from continuity_conformance.terminal.output import say, say_json, warn, width
from continuity_spec import Requirement, load_spec
from continuity_spec.lint import lint_files
from continuity_spec.load.loader import BUNDLED
from continuity_spec.render.diagram import line_style_for
from continuity_spec.render.page import RequirementPage, choose_scenarios
from continuity_spec.render.prose import render_prose
from continuity_spec.render.table import as_rows, as_table

_NARROW: Final = 60
_WIDE: Final = 100
"""Wider diagrams only have longer arrows."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="every requirement of the spec, one line each")
    listing.add_argument("--json", action="store_true", help="as JSON, with all fields")
    listing.set_defaults(action=_list)
    show = actions.add_parser("show", help="what a requirement demands, why, and how it is checked")
    show.add_argument("ids", nargs="+", metavar="ID")
    which = show.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="draw every scenario instead of only the first")
    which.add_argument("--scenario", metavar="NAME", help="draw this scenario instead of the first")
    show.set_defaults(action=_show)
    lint = actions.add_parser("lint", help="check requirement files: form, words, names, English")
    lint.add_argument("files", nargs="*", type=Path, metavar="FILE", help="default: those of the spec and of the packs")
    lint.set_defaults(action=_lint)
    prose = actions.add_parser("prose", help="the whole spec as one document to read, in Markdown")
    prose.set_defaults(action=_prose)
    vectors = actions.add_parser("vectors", help="the test vectors: list the files, or print one")
    vectors.add_argument("file", nargs="?", metavar="FILE", help="the file to print, such as derivation-v1.json")
    vectors.add_argument("--folder", action="store_true", help="print the folder that holds the files")
    vectors.set_defaults(action=_vectors)
    spec_openapi.add_action(actions)


def run(options: argparse.Namespace) -> int:
    code: int = options.action(options)
    return code


def _list(options: argparse.Namespace) -> int:
    warn(installed().broken)
    whole = whole_spec()
    if options.json:
        say_json(as_rows(whole))
    else:
        say(as_table(whole, width()))
    return 0


def _show(options: argparse.Namespace) -> int:
    warn(installed().broken)
    whole = whole_spec()
    wanted = [whole.requirement(identity.upper()) for identity in options.ids]
    drawn = [
        (requirement, choose_scenarios(requirement, options.scenario, every=options.all)) for requirement in wanted
    ]
    screen = RequirementPage(
        min(max(width(), _NARROW), _WIDE),
        line_style_for(sys.stdout.encoding),
        {defect.name: defect.cited for defect in defects().values()},
        _descriptions(wanted),
    )
    say("\n\n".join(screen.render(*each) for each in drawn))
    return 0


def _descriptions(wanted: list[Requirement]) -> dict[str, str]:
    """The docstrings of the Python checks, if any of these requirements has one."""
    if all(requirement.check is None for requirement in wanted):
        return {}
    return {name: (check.__doc__ or "").partition(": ")[2] for name, check in known_checks().items()}


def _prose(_: argparse.Namespace) -> int:
    say(render_prose(load_spec()).rstrip())
    return 0


def _vectors(options: argparse.Namespace) -> int:
    folder = BUNDLED / "vectors"
    if options.folder:
        say(str(folder))
        return 0
    files = sorted(path for path in folder.iterdir() if path.suffix in {".json", ".md"})
    if options.file is None:
        say("\n".join(_vector_row(path) for path in files))
        return 0
    chosen = next((path for path in files if options.file in {path.name, path.stem}), None)
    if chosen is None:
        raise UsageError(
            f"There is no file {options.file} of vectors.",
            where=str(folder),
            do=f"Name one of {', '.join(path.name for path in files)}.",
        )
    say(chosen.read_text(encoding="utf-8").rstrip())
    return 0


def _vector_row(path: Path) -> str:
    if path.suffix != ".json":
        return f"{path.name:<22}  the format of the files, and the algorithms"
    return f"{path.name:<22}  {len(json.loads(path.read_text(encoding='utf-8')))} vectors"


def _lint(options: argparse.Namespace) -> int:
    checks = known_checks()
    bundled = () if options.files else load_spec().requirements
    packs = Packs() if options.files else installed()
    problems = lint_files(options.files or [*sorted((BUNDLED / "requirements").glob("*.yaml")), *packs.files])
    problems += [
        f'{entry.place}: there is no check "{entry.check}". Known checks: {", ".join(sorted(checks))}'
        for entry in bundled
        if entry.check is not None and entry.check not in checks
    ]
    problems += [str(error) for error in packs.broken]
    say("\n".join(problems) or "nothing to report")
    return 1 if problems else 0

"""A page in one file: template, style and script together, and a policy that lets nothing else in.

Jinja2 escapes whatever is put into a page. The policy names style and script by their hash: no other runs, and nothing is fetched.
"""

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import jinja2
from markupsafe import Markup

from continuity_conformance.core.verdicts import Verdict

_FOLDER: Final = Path(__file__).parent / "templates"
ROOM: Final = 1_000_000
"""How many bytes of a page are for evidence. The rest of its 1.5 MB is for what the spec says."""
MARKS: Final[Mapping[Verdict, str]] = {
    Verdict.PASS: "✓",
    Verdict.FAIL: "✗",
    Verdict.NOT_TESTED: "?",
    Verdict.NOT_APPLICABLE: "-",
    Verdict.ERROR: "!",
}
"""Verdicts are told by sign and word, never by colour alone."""


def page(name: str, script: str | None, **facts: object) -> str:
    """A whole page, from a template and the values in it."""
    style, code = _text("page.css"), _text(script) if script else ""
    policy = f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(code)}; base-uri 'none'; form-action 'none'"
    # Both are files of ours: nothing in them comes from outside.
    own = {"style": Markup(style), "script": Markup(code)}  # noqa: S704
    return template(name).render(policy=policy, marks=MARKS, **own, **facts) + "\n"


@cache
def template(name: str) -> jinja2.Template:
    return _environment().get_template(name)


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

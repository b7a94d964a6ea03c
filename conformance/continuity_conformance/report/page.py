"""A web page in one file: template, style and script, with a content security policy that allows nothing else.

Jinja2 escapes all values. The policy allows the style and the script by their hashes: no other script runs, and the page fetches nothing.
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
EVIDENCE_BYTES: Final = 950_000
"""The bytes of a page that evidence may take. The rest of its 1.5 MB is for the descriptions of the spec."""
MARKS: Final[Mapping[Verdict, str]] = {
    Verdict.PASS: "✓",
    Verdict.FAIL: "✗",
    Verdict.NOT_TESTED: "?",
    Verdict.NOT_APPLICABLE: "-",
    Verdict.ERROR: "!",
}
"""A verdict is shown as sign and word, never by colour alone."""


def style() -> str:
    """The style sheet of every page."""
    return _text("page.css")


def page(name: str, script: str | None, **values: object) -> str:
    """Render a whole page from a template and its values."""
    css, code = style(), _text(script) if script else ""
    policy = f"default-src 'none'; img-src data:; style-src {_hash(css)}; script-src {_hash(code)}; base-uri 'none'; form-action 'none'"
    # Both are files of this package: nothing in them comes from a server.
    own = {"style": Markup(css), "script": Markup(code)}  # noqa: S704
    return template(name).render(policy=policy, marks=MARKS, **own, **values) + "\n"


@cache
def template(name: str) -> jinja2.Template:
    return environment(_FOLDER).get_template(name)


@cache
def environment(folder: Path) -> jinja2.Environment:
    """How templates of a folder become markup: every value is escaped, and a name without a value is a mistake."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

"""Generated pages that are committed, because people read them on the project's pages too: which of them are stale, and what writes them anew."""

from collections.abc import Iterator
from pathlib import Path

from page import PAGE as MATRIX
from page import page as matrix_page
from prose import classes, vocabulary

import publish
from continuity_conformance.suite.defects import defects
from continuity_conformance.suite.matrix import published
from continuity_spec import load_spec
from continuity_spec.render.prose import render_prose
from docs_site.repository import DOCS

_SPEC = DOCS / "reference" / "spec.md"


def stale() -> Iterator[str]:
    """A sentence for each page that is not what its program would write now."""
    for path, text, command in _pages():
        if path.read_text(encoding="utf-8") != text:
            yield f"{path.relative_to(DOCS.parent)} is stale. Run: {command}"


def _pages() -> Iterator[tuple[Path, str, str]]:
    spec = load_spec()
    yield _SPEC, render_prose(spec), "continuity spec prose > docs/reference/spec.md"
    yield classes.PAGE, classes.page(spec), "python tools/prose/classes.py"
    yield (
        vocabulary.PAGE,
        vocabulary.filled(vocabulary.PAGE.read_text(encoding="utf-8")),
        "python tools/prose/vocabulary.py",
    )
    yield MATRIX, matrix_page(published(), defects(), spec.requirements), "python tools/matrix/page.py"
    for path, text in publish.pages().items():
        yield path, text, "python tools/published_results/publish.py"

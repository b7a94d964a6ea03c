"""The example on the page of the vocabulary, from the real entry: `python tools/prose/vocabulary.py` writes it.

A part of the page between `<!-- entry ID -->` or `<!-- diagram ID -->` and `<!-- end -->` is replaced by the entry as its file has it, or by its drawing.
"""

import re
from pathlib import Path
from typing import Final

from continuity_spec import load_spec
from continuity_spec.load.loader import BUNDLED
from continuity_spec.render.arrows import elements
from continuity_spec.render.diagram import UNICODE, draw

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "vocabulary.md"
_PART: Final = re.compile(r"<!-- (entry|diagram) ([A-Z]+-\d{2}) -->\n.*?<!-- end -->", re.DOTALL)


def filled(page: str) -> str:
    """Return the page with current examples."""
    return _PART.sub(lambda part: f"<!-- {part[1]} {part[2]} -->\n{_block(part[1], part[2])}\n<!-- end -->", page)


def _block(kind: str, identity: str) -> str:
    return f"```yaml\n{_entry(identity)}\n```" if kind == "entry" else f"```text\n{_diagram(identity)}\n```"


def _entry(identity: str) -> str:
    """Return the text of an entry in its file."""
    area = identity.partition("-")[0].lower()
    text = (BUNDLED / "requirements" / f"{area}.yaml").read_text(encoding="utf-8")
    entries = re.split(r"^(?=- id: )", text, flags=re.MULTILINE)
    return next(entry for entry in entries if entry.startswith(f"- id: {identity}\n")).strip()


def _diagram(identity: str) -> str:
    return "\n".join(draw(elements(load_spec().requirement(identity).scenarios[0]), UNICODE))


def main() -> None:
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()

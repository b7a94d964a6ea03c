"""The text of an entry as its file has it, with its comments and its order."""

from __future__ import annotations

import re
from pathlib import Path

from continuity_spec.load.loader import BUNDLED
from continuity_spec.model import Requirement

_NEXT_ENTRY = re.compile(r"^(?=- id: )", re.MULTILINE)


def entry_source(requirement: Requirement) -> str:
    """Return the YAML of one requirement."""
    file = Path(requirement.place.file)
    text = (file if file.is_file() else BUNDLED / "requirements" / file.name).read_text(encoding="utf-8")
    return next(entry.rstrip() for entry in _NEXT_ENTRY.split(text) if entry.startswith(f"- id: {requirement.id}\n"))

"""docs/reference/classes.md is what classes.yaml says."""

import runpy
from pathlib import Path

from continuity_spec import load_spec

TOOL = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "prose" / "classes.py"))


def test_the_page_is_that_of_the_classes():
    assert TOOL["PAGE"].read_text(encoding="utf-8") == TOOL["page"](load_spec())

"""How many modules one chat step passes through is measured, and how-a-run-works.md states the number."""

import re
from pathlib import Path

from step_path import measure

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "how-a-run-works.md"
AT_MOST = 45


def test_one_chat_step_passes_through_few_modules():
    modules = measure().step
    stated = re.search(r"passes through \*\*(\d+) modules\*\*", PAGE.read_text(encoding="utf-8"))

    assert stated is not None
    assert len(modules) == int(stated[1]) <= AT_MOST, sorted(modules)

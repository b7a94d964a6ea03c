"""Measure when each requirement is decided in a run on the bundled server, and write what `terminal/time_left.py` judges the time left by."""

import json
import sys
import time
from collections.abc import Sequence

from continuity_conformance.cli import check, main
from continuity_conformance.core.verdicts import Result
from continuity_conformance.terminal import time_left
from continuity_conformance.terminal.progress import ProgressDisplay

DECIDED_AT: dict[str, float] = {}


class Watch(ProgressDisplay):
    """Notes the time at which a result is first seen."""

    def tick(self, decided: Sequence[Result]) -> None:
        for result in decided:
            DECIDED_AT.setdefault(result.id, round(time.monotonic() - self._began, 2))
        super().tick(decided)


if __name__ == "__main__":
    check.ProgressDisplay = Watch  # type: ignore[misc]
    code = main.main(["check"])
    if code:
        sys.exit(code)
    time_left.FILE.write_text(json.dumps(dict(sorted(DECIDED_AT.items())), indent=1) + "\n", encoding="utf-8")

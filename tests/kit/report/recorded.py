"""Run the command as a user does, and load or save its results.json as data."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

CONTINUITY = str(Path(sys.executable).with_name("continuity"))
PART = "COMPRESS-09 or HISTORY-02 or SLUG-16 or SLUG-03 or SLUG-12 or ECHO-02 or ECHO-08 or ECHO-12 or DERIVE-04 or DERIVE-12"
VERDICTS = ("pass", "fail", "not_applicable", "not_tested", "error")


def continuity(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    foreign = ("PYTEST_", "COV_", "GITHUB_")
    own = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return subprocess.run(
        [CONTINUITY, *arguments],
        cwd=cwd,
        env=own | {"COLUMNS": "80", **environ},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


def checked(folder: Path, *arguments: str, **environ: str) -> None:
    done = continuity("check", *arguments, "--report", str(folder), cwd=folder, **environ)
    (folder / "terminal.txt").write_text(done.stdout)
    assert (folder / "report.html").is_file(), done.stdout + done.stderr


def load(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


def save(folder: Path, data: dict[str, Any]) -> Path:
    """Write results that add up."""
    found = Counter(each["verdict"] for each in data["requirements"])
    data["counts"] = {verdict: found[verdict] for verdict in VERDICTS}
    path = folder / "results.json"
    path.write_text(json.dumps(data, ensure_ascii=True), encoding="utf-8")
    return path

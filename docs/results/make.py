"""Makes docs/results: runs each target, keeps what is small of its results.json, and lays all of them side by side.

`python docs/results/make.py hermes==0.19.0 …` runs these; without a name only the pages are made anew, from what is there. What is kept of a run is every verdict
with its reason, and of each scenario that failed the text of its first failure: the whole transcript, fit for an issue. The rest of the evidence can be had by
running the command again.

The pages: README.md with all verdicts, and what was measured by hand (`measured.yaml`) beside them; failures.md in the folder of each run.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from pages import failures, kept, measured, overview

HERE = Path(__file__).parent
CONTINUITY = str(Path(sys.executable).with_name("continuity"))


def run(target: str) -> None:
    with tempfile.TemporaryDirectory() as report:
        command = ["continuity", "check", target, "--report", "DIR"]
        done = subprocess.run([CONTINUITY, *command[1:-1], report], check=False)
        results = json.loads(Path(report, "results.json").read_text(encoding="utf-8"))
    if not results["complete"]:
        sys.exit(f"{target}: the run did not end (exit code {done.returncode})")
    folder = HERE / target.replace("==", "-")
    folder.mkdir(exist_ok=True)
    (folder / "results.json").write_text(kept.text(results), encoding="utf-8")
    (folder / "command.txt").write_text(f"{results['started']}  {' '.join(command)}\n", encoding="utf-8")


def pages() -> dict[Path, str]:
    """Every page, and where it stands."""
    about = (HERE / "about.md").read_text(encoding="utf-8")
    first = f"{about}\n{overview.side_by_side()}\n{measured.page()}"
    return {HERE / "README.md": first, **{folder / "failures.md": failures.page(folder) for folder in kept.runs()}}


if __name__ == "__main__":
    for name in sys.argv[1:]:
        run(name)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")

"""Write docs/results: run targets, keep the small part of each results.json, and write the pages that compare all runs.

`python tools/published_results/publish.py hermes==0.19.0 …` runs these targets and then writes all pages. Without a name it runs nothing and writes the pages from the
results that are already there. Of a run it keeps every verdict with its reason, and for each failed scenario the text of the first failure: the whole transcript,
ready for an issue. To get the rest of the evidence, run the command again.

The pages are README.md, with all verdicts beside the measurements made by hand (`measured.yaml`), and failures.md in the folder of each run.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from pages import failures, kept, measured, overview

CONTINUITY = str(Path(sys.executable).with_name("continuity"))


def run(target: str) -> None:
    with tempfile.TemporaryDirectory() as report:
        command = ["continuity", "check", target, "--report", "DIR"]
        done = subprocess.run([CONTINUITY, *command[1:-1], report], check=False)
        results = json.loads(Path(report, "results.json").read_text(encoding="utf-8"))
    if not results["complete"]:
        sys.exit(f"{target}: the run did not end (exit code {done.returncode})")
    folder = kept.RESULTS / target.replace("==", "-")
    folder.mkdir(exist_ok=True)
    (folder / "results.json").write_text(kept.text(results), encoding="utf-8")
    (folder / "command.txt").write_text(f"{results['started']}  {' '.join(command)}\n", encoding="utf-8")


def pages() -> dict[Path, str]:
    """Every page, and where it stands."""
    about = (kept.RESULTS / "about.md").read_text(encoding="utf-8")
    first = f"{about}\n{overview.side_by_side()}\n{measured.page()}"
    return {
        kept.RESULTS / "README.md": first,
        **{folder / "failures.md": failures.page(folder) for folder in kept.runs()},
    }


if __name__ == "__main__":
    for name in sys.argv[1:]:
        run(name)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")

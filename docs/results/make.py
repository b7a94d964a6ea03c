"""Makes docs/results: runs each target, keeps what is small of its results.json, and lays all of them side by side.

`python docs/results/make.py hermes==0.19.0 …` runs these; without a name only the page is made anew, from what is there. What is kept of a run is every verdict
with its reason, and of each scenario that failed the text of its first failure: the whole transcript, fit for an issue. The rest of the evidence can be had by
running the command again.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from continuity_conformance.cache import user_cache

HERE = Path(__file__).parent
CONTINUITY = str(Path(sys.executable).with_name("continuity"))
DROPPED = {"scenarios", "why", "origin", "how", "question", "checked", "build", "pitfalls"}
"""What the spec says about a requirement: it stands in the spec."""


def run(target: str) -> None:
    with tempfile.TemporaryDirectory() as report:
        command = ["continuity", "check", target, "--report", "DIR"]
        done = subprocess.run([CONTINUITY, *command[1:-1], report], check=False)
        results = json.loads(Path(report, "results.json").read_text(encoding="utf-8"))
    if not results["complete"]:
        sys.exit(f"{target}: the run did not end (exit code {done.returncode})")
    folder = HERE / target.replace("==", "-")
    folder.mkdir(exist_ok=True)
    (folder / "results.json").write_text(text(results), encoding="utf-8")
    (folder / "command.txt").write_text(f"{results['started']}  {' '.join(command)}\n", encoding="utf-8")


def text(results: dict[str, Any]) -> str:
    """What is kept, without where this machine has its cache."""
    return json.dumps(kept(results), indent=1, ensure_ascii=False).replace(str(user_cache()), "CACHE")


def kept(results: dict[str, Any]) -> dict[str, Any]:
    return {**results, "requirements": [requirement(each) for each in results["requirements"]]}


def requirement(each: dict[str, Any]) -> dict[str, Any]:
    failed = [evidence for evidence in each["evidence"] if evidence["outcome"] == "fail"]
    by_scenario = {evidence["scenario"]: {**evidence, "exchanges": []} for evidence in reversed(failed)}
    told = {key: value for key, value in each.items() if key not in DROPPED}
    return {**told, "evidence": list(reversed(by_scenario.values()))}


def page() -> str:
    files = sorted(
        HERE.glob("*/results.json"), key=lambda path: [_number(part) for part in path.parent.name.split("-")]
    )
    compared = subprocess.run(
        [CONTINUITY, "compare", "--format", "md", *(str(path.relative_to(HERE)) for path in files)],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    commands = "".join(f"- {(path.parent / 'command.txt').read_text(encoding='utf-8')}" for path in files)
    return f"{(HERE / 'about.md').read_text(encoding='utf-8')}\n{commands}\n{compared.stdout}"


def _number(part: str) -> tuple[int, str]:
    digits = part.replace(".", "")
    return (int("".join(f"{int(each):04}" for each in part.split("."))), "") if digits.isdigit() else (0, part)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        run(name)
    (HERE / "README.md").write_text(page(), encoding="utf-8")

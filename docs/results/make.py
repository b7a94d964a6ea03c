"""Makes docs/results: runs each target, keeps what is small of its results.json, and lays all of them side by side.

`python docs/results/make.py hermes==0.19.0 …` runs these; without a name only the page is made anew, from what is there. What is kept of a run is every verdict
with its reason, and of each scenario that failed the text of its first failure: the whole transcript, fit for an issue. The rest of the evidence can be had by
running the command again.

`measured.yaml` has what was measured by hand on hermes-agent; the page tells row by row whether the verdicts agree with it.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from continuity_conformance.cache import user_cache
from continuity_conformance.report.markdown import table

HERE = Path(__file__).parent
CONTINUITY = str(Path(sys.executable).with_name("continuity"))
DROPPED = {"scenarios", "why", "origin", "how", "question", "checked", "build", "pitfalls"}
"""What the spec says about a requirement: it stands in the spec."""

NOT_RUN = "not run"
MEASURED = """\
## hermes-agent: measured by hand, and by the suite

What was measured by hand before there was a suite ([measured.yaml](measured.yaml)), and the verdict on each requirement, or on one of its scenarios, that shows the same. A
scenario ends where it first fails: what it asks before that holds. Of scenarios only failures are kept, so that otherwise *no failure* is all that can be said. Where measurement and
verdict disagree, the last column has the verdict that would follow, and the reason stands below.

"""


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
    by_scenario = {
        evidence["scenario"]: {**evidence, "exchanges": [], "interventions": []} for evidence in reversed(failed)
    }
    told = {key: value for key, value in each.items() if key not in DROPPED}
    return {**told, "evidence": list(reversed(by_scenario.values()))}


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured by hand on one version, and what the suite says about it."""

    behaviour: str
    version: str
    measured: str
    shown_by: str
    follows: str
    """The verdict, if the measurement is right."""
    verdict: str
    because: str
    """Why they disagree, where they do."""

    @property
    def agrees(self) -> str:
        if self.verdict == NOT_RUN:
            return NOT_RUN
        return "yes" if self.verdict == self.follows else f"**no**: {self.follows}"


def disagreements(folder: Path = HERE) -> list[Row]:
    return [row for row in agreement(folder) if row.verdict not in {row.follows, NOT_RUN}]


def agreement(folder: Path = HERE) -> Iterator[Row]:
    for entry in entries():
        for version, measured in entry["measured"].items():
            path = folder / f"hermes-{version}" / "results.json"
            for shown_by, follows in _following(entry.get("shown_by", {}), version):
                verdict, because = told(path, shown_by), entry.get("because", "")
                yield Row(entry["behaviour"], version, measured, shown_by, follows, verdict, because)


def entries() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((HERE / "measured.yaml").read_text(encoding="utf-8"))
    return found


def _following(shown_by: dict[str, Any], version: str) -> Iterator[tuple[str, str]]:
    for each, follows in shown_by.items():
        if not isinstance(follows, dict):
            yield each, follows
        elif version in follows:
            yield each, follows[version]


def told(path: Path, shown_by: str) -> str:
    """The verdict on a requirement, or on one of its scenarios or examples, in the words of measured.yaml."""
    if not path.exists():
        return NOT_RUN
    name, _, part = shown_by.partition(" ")
    found = requirements(path)[name]
    failed = [each for each in found["evidence"] if part in {"", each["scenario"], each["example"]}]
    if failed:
        return f"fail at {failed[0]['expectation']}"
    return "no failure" if part and found["verdict"] in {"pass", "fail"} else str(found["verdict"])


@cache
def requirements(path: Path) -> dict[str, dict[str, Any]]:
    return {each["id"]: each for each in json.loads(path.read_text(encoding="utf-8"))["requirements"]}


def page() -> str:
    files = sorted(HERE.glob("*/results.json"), key=_order)
    commands = "".join(f"- {(path.parent / 'command.txt').read_text(encoding='utf-8')}" for path in files)
    about = (HERE / "about.md").read_text(encoding="utf-8")
    return f"{about}\n{commands}\n{measured()}\n{side_by_side(files)}"


def measured() -> str:
    rows = list(agreement())
    by_version = groupby(rows, lambda row: (row.behaviour, row.version))
    heads = ("behaviour", "version", "measured by hand", "requirement", "verdict", "agrees")
    lines = table(heads, (_cells(list(same)) for _, same in by_version))
    ran = sum(row.verdict != NOT_RUN for row in rows)
    notes = (
        f"**{each['behaviour']}.** {each[why]}" for why in ("because", "unseen") for each in entries() if why in each
    )
    agrees = f"{ran - len(disagreements())} of {ran} verdicts agree."
    return "\n\n".join((f"{MEASURED}{agrees}", "\n".join(lines), *notes)) + "\n"


def _cells(rows: list[Row]) -> tuple[str, ...]:
    shown = zip(*((row.shown_by, row.verdict, row.agrees) for row in rows), strict=True)
    return rows[0].behaviour, rows[0].version, rows[0].measured, *("<br>".join(cells) for cells in shown)


def side_by_side(files: list[Path]) -> str:
    """All runs in one matrix, and what changed between versions of one target."""
    compared = subprocess.run(
        [CONTINUITY, "compare", "--format", "md", *(str(path.relative_to(HERE)) for path in files)],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    _, runs, *sections = re.split(r"^#+ ", compared.stdout, flags=re.MULTILINE)
    kept_sections = "".join(f"## {section}" for section in sections if _of_one_target(section))
    return f"## All runs\n{runs.partition(chr(10))[2]}{kept_sections}"


def _of_one_target(section: str) -> bool:
    """`From` tells what changed from a run to the next. Between two servers that says nothing."""
    head, _, _ = section.partition("\n")
    return len(set(re.findall(r"`(\S+(?: rotating)?) ", head))) <= 1


def _order(path: Path) -> tuple[str, list[int]]:
    name, _, version = path.parent.name.rpartition("-")
    return name, [int(part) for part in version.split(".")]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        run(name)
    (HERE / "README.md").write_text(page(), encoding="utf-8")

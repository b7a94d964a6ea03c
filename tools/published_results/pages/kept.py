"""What is kept of a run: every verdict with its reason, and of each scenario that failed or was blocked, or example of it, the first failure. Nothing of the machine."""

import json
import re
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from continuity_conformance.core.cache import user_cache

_PROJECT = Path(__file__).parents[3]
RESULTS = _PROJECT / "docs" / "results"
_DROPPED = {"scenarios", "why", "origin", "how", "question", "checked", "build", "pitfalls"}
"""What the spec says about a requirement: it stands in the spec."""
_DOUBLED = re.compile(r"(?:^|, )([^,]+) \(no answer\), \1(?=,|$)")
_SCRATCH = re.compile(rf"(?:/tmp|{re.escape(tempfile.gettempdir())})/continuity-[\w-]+")
_IN_WORDS = (
    (re.compile(r"saved as CACHE/found/[\w-]+\.yaml"), "the run saved it as a scenario"),
    (
        re.compile(r"Play it alone: continuity run CACHE/found/[^\"\\\n]+"),
        "Play it alone: the run says where it saved it",
    ),
    (re.compile(r"CACHE/targets/[^/\s]+/bin/"), ""),
    (re.compile(r"\bhost=[\w.-]+ \| os=[^|]+\|"), "host=… | os=… |"),
    (re.compile(r"https?://github\.com[\w./-]*"), "(a page)"),
    (re.compile(r"SCRATCH/home\b"), "SCRATCH/HOME"),
    (re.compile(r" — install from https?://[\w./-]+"), ""),
)
"""Files that are not published, and hosts that a target speaks of."""


def text(results: dict[str, Any]) -> str:
    return cleaned(json.dumps(kept(results), indent=1, ensure_ascii=False))


def cleaned(text: str) -> str:
    """The same without where a machine has its files."""
    text = _SCRATCH.sub("SCRATCH", text.replace(str(user_cache()), "CACHE"))
    text = text.replace(f"{_PROJECT}/", "").replace(sys.base_prefix, "PYTHON").replace(f"{Path.home()}/", "~/")
    for path, words in _IN_WORDS:
        text = path.sub(words, text)
    return text


def kept(results: dict[str, Any]) -> dict[str, Any]:
    return {**results, "requirements": [_requirement(each) for each in results["requirements"]]}


def _requirement(each: dict[str, Any]) -> dict[str, Any]:
    first: dict[tuple[str, str], dict[str, Any]] = {}
    for evidence in each["evidence"]:
        if evidence["outcome"] == "fail" or evidence.get("kinds"):
            told_in_text = {**evidence, "exchanges": [], "interventions": []}
            first.setdefault((evidence["scenario"], evidence["example"]), told_in_text)
    told = {key: value for key, value in each.items() if key not in _DROPPED}
    return {**told, "evidence": list(first.values())}


def runs() -> list[Path]:
    """The folder of each run, versions of one target in their order."""
    return sorted((path.parent for path in RESULTS.glob("*/results.json")), key=_order)


def _order(folder: Path) -> tuple[str, list[int]]:
    name, _, version = folder.name.rpartition("-")
    return name, [int(part) for part in version.split(".")]


@cache
def requirements(folder: Path) -> dict[str, dict[str, Any]]:
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return {each["id"]: each for each in results["requirements"]}


def failed(requirement: dict[str, Any]) -> list[dict[str, Any]]:
    """The scenarios that failed on their own. The others that are kept were blocked."""
    return [each for each in requirement["evidence"] if each.get("outcome", "fail") == "fail"]


def doubles(evidence: dict[str, Any]) -> bool:
    """Whether the model saw a turn twice, first without its answer, and otherwise what was expected: nothing is missing, and nothing is there that is not expected."""
    again = bool(_DOUBLED.search(evidence["actual"]))
    return again and _once(evidence["actual"]) == _once(evidence["expected"])


def _once(turns: str) -> list[str]:
    return list(dict.fromkeys(turn.removesuffix(" (no answer)") for turn in turns.split(", ")))


def only_doubles(requirement: dict[str, Any]) -> bool:
    """Whether that is all that is seen to be wrong: so fails every scenario that fails."""
    return bool(failed(requirement)) and all(map(doubles, failed(requirement)))


def blocked_by(requirement: dict[str, Any]) -> str:
    """The requirement that blocks this one; empty if none does."""
    return str(requirement.get("blocked_by") or "")


@cache
def classes(folder: Path) -> dict[str, dict[str, Any]]:
    """The conformance classes of a run. Runs of an earlier kit do not say how far each class is."""
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return {each["name"]: each for each in results["classes"] if "applicable" in each}

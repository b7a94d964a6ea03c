"""The runs that are published, and what they say. `continuity_conformance.report.submission` decides what is kept of a run."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from continuity_conformance.report import submission
from continuity_conformance.report.submission import kept

_PROJECT = Path(__file__).parents[3]
RESULTS = _PROJECT / "docs" / "results"
__all__ = [
    "blocked_by",
    "classes",
    "cleaned",
    "doubles",
    "failed",
    "kept",
    "only_doubles",
    "requirements",
    "runs",
    "text",
]
_DOUBLED = re.compile(r"(?:^|, )([^,]+) \(no answer\), \1(?=,|$)")


def cleaned(told: str) -> str:
    """The same without where a machine has its files."""
    return submission.cleaned(told, _PROJECT)


def text(results: dict[str, Any]) -> str:
    return submission.text(results, _PROJECT)


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


def shown(requirement: dict[str, Any]) -> list[dict[str, Any]]:
    """The evidence of what fails, and of what would fail if nothing blocked it."""
    return [each for each in requirement["evidence"] if each.get("outcome", "fail") == "fail" or each.get("kinds")]


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

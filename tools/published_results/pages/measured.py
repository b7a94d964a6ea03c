"""What was measured by hand on a target, row by row beside the verdicts that are about the same."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from continuity_conformance.report.markdown import table
from pages.kept import RESULTS, blocked_by, doubles, failed, requirements, shown

NOT_RUN = "not run"
HOLDS = "holds"
_FIRST = "hermes"
"""The target of entries that name none."""
_HEAD = """\
## Measured by hand, and by the suite

What was measured by hand, before the suite was played on that server ([measured.yaml](measured.yaml)), and the verdict on each requirement, or on one of its scenarios, that is about the same. Many measurements are
about one step: *to step 2: holds* says that nothing failed up to there, whatever a later step found. *$old* is the name that the scenario has for the session that was told, *an unnamed one* is none that it knows
by then. Of scenarios only failures are kept, so that otherwise *no failure* is all that can be said. Where measurement and verdict disagree, the last column has the verdict that would follow from
the measurement, and the reason stands below.

"""
_NOTES = ("because", "unseen", "alike")
_NAMED = re.compile(r"\$\w+")
_TO_STEP = re.compile(r"(.*), to step (\d+)")


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured by hand on one version, and what the suite says about it."""

    target: str
    behaviour: str
    version: str
    measured: str
    shown_by: str
    follows: str
    """The verdict, if the measurement is right; as far as the measurement tells it."""
    verdict: str
    because: str
    """Why they disagree, where they do."""

    @property
    def disagrees(self) -> bool:
        return self.verdict not in {NOT_RUN, self.follows} and not self.verdict.startswith(f"{self.follows}, ")

    @property
    def agrees(self) -> str:
        if self.verdict == NOT_RUN:
            return NOT_RUN
        return f"**no**: {self.follows}" if self.disagrees else "yes"


def disagreements(folder: Path = RESULTS) -> list[Row]:
    return [row for row in agreement(folder) if row.disagrees]


def agreement(folder: Path = RESULTS) -> Iterator[Row]:
    for entry in entries():
        for version, measured in entry["measured"].items():
            for shown_by, follows in _following(entry.get("shown_by", {}), version):
                target, because = target_of(entry), entry.get("because", "")
                verdict = told(folder / f"{target}-{version}", shown_by)
                yield Row(target, entry["behaviour"], version, measured, shown_by, follows, verdict, because)


def target_of(entry: dict[str, Any]) -> str:
    return str(entry.get("target", _FIRST))


def entries() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((RESULTS / "measured.yaml").read_text(encoding="utf-8"))
    return found


def _following(shown_by: dict[str, Any], version: str) -> Iterator[tuple[str, str]]:
    for each, follows in shown_by.items():
        if not isinstance(follows, dict):
            yield each, follows
        elif version in follows:
            yield each, follows[version]


def named(shown_by: str) -> tuple[str, str, int]:
    """The requirement, the scenario or example of it, and the step up to which it counts; 0 where all do."""
    name, _, part = shown_by.partition(" ")
    limited = _TO_STEP.fullmatch(part)
    return (name, limited[1], int(limited[2])) if limited else (name, part, 0)


def told(folder: Path, shown_by: str) -> str:
    """The verdict on a requirement, or on a part of it, in the words of measured.yaml."""
    if not (folder / "results.json").exists():
        return NOT_RUN
    name, part, last = named(shown_by)
    found = requirements(folder)[name]
    seen = [each for each in shown(found) if part in {"", each["scenario"], each["example"]}]
    first = next(iter([each for each in seen if each in failed(found)] or seen), None)
    if first and (not last or _step(first) <= last):
        return f"{'fail' if first in failed(found) else 'blocked'} at {first['expectation']}{_detail(first)}"
    if not part or (found["verdict"] not in {"pass", "fail"} and not blocked_by(found)):
        return str(found["verdict"])
    return HOLDS if last else "no failure"


def _step(evidence: dict[str, Any]) -> int:
    return int(re.match(r"\d+", evidence["step"])[0])  # type: ignore[index] # every step of a scenario has a number


def _detail(evidence: dict[str, Any]) -> str:
    """What tells two failures of one expectation apart."""
    match evidence["expectation"]:
        case "session":
            name = _NAMED.search(evidence["actual"])
            return f", {name[0]}" if name else ", an unnamed one"
        case "status":
            return f", {evidence['actual'].partition(' ')[0]}"
        case "sees" if doubles(evidence):
            return ", doubled"
    return ""


def page() -> str:
    targets = sorted({target_of(entry) for entry in entries()})
    return "\n\n".join((_HEAD.rstrip(), *(part for target in targets for part in _section(target)))) + "\n"


def _section(target: str) -> Iterator[str]:
    rows = [row for row in agreement() if row.target == target]
    ran = [row for row in rows if row.verdict != NOT_RUN]
    by_version = groupby(rows, lambda row: (row.behaviour, row.version))
    heads = ("behaviour", "version", "measured by hand", "requirement", "verdict", "agrees")
    yield f"### {target}"
    yield f"{sum(not row.disagrees for row in ran)} of {len(ran)} verdicts agree."
    yield "\n".join(table(heads, (_cells(list(same)) for _, same in by_version)))
    measured = [entry for entry in entries() if target_of(entry) == target]
    yield from (f"**{each['behaviour']}.** {each[why]}" for why in _NOTES for each in measured if why in each)


def _cells(rows: list[Row]) -> tuple[str, ...]:
    shown = zip(*((row.shown_by, row.verdict, row.agrees) for row in rows), strict=True)
    return rows[0].behaviour, rows[0].version, rows[0].measured, *("<br>".join(cells) for cells in shown)

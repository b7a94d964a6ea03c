"""The runs side by side: how far each is in each class, how many requirements it keeps, every verdict in one matrix, and what changed from a version to the next."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.report.compare import Change, ComparedRun, Comparison, compare
from continuity_conformance.report.markdown import plain, table
from continuity_conformance.report.page import MARKS
from continuity_conformance.results.read import read
from continuity_conformance.results.tally import HEADS
from pages.kept import blocked_by, classes, requirements, runs

_SHORT = 60
_NOT_THERE = "·"
_MATRIX = """\
## All requirements

{legend}. Each {fail} leads to what failed; why something was not tested stands at the end of the same page. Texts are cut; `continuity spec show ID` has them whole.
"""
_CLASSES = """\
## Classes

How many of the MUST requirements that apply passed, in each class: *conformant* where all did, and the classes that it requires are conformant too. {empty}: the class does not apply, or the run is
one of an earlier kit. Strict does not decide.
"""
_CHANGES = """\
## From version to version

*Blocked by* another requirement: the scenarios failed in the same way as that more basic one, so they say nothing of their own.
"""


def side_by_side() -> str:
    folders = runs()
    comparison = compare([read(folder / "results.json") for folder in folders], [folder.name for folder in folders])
    parts = (
        _classes(comparison, folders),
        _counts(comparison, folders),
        _matrix(comparison, folders),
        _changes(comparison, folders),
    )
    return "\n".join(line for part in parts for line in part)


def _classes(comparison: Comparison, folders: list[Path]) -> Iterator[str]:
    names = dict.fromkeys(name for folder in folders for name in classes(folder))
    yield _CLASSES.format(empty=_NOT_THERE)
    yield from table(
        ("class", *(plain(run.name) for run in comparison.runs)),
        ((f"**{name}**", *(level(folder, name) for folder in folders)) for name in names),
    )
    yield from ("", "## Requirements", "")


def level(folder: Path, name: str) -> str:
    found = classes(folder).get(name)
    if found is None or not found["applicable"]:
        return _NOT_THERE
    if found["verdict"] == "conformant":
        return "conformant"
    return f"{found['passed']} of {found['applicable']}"


def _counts(comparison: Comparison, folders: list[Path]) -> Iterator[str]:
    yield from table(
        ("run", *(HEADS[verdict] for verdict in HEADS), "again"),
        (
            (_named(run, folder), *(run.tally.counts[verdict] for verdict in HEADS), _again(folder))
            for run, folder in zip(comparison.runs, folders, strict=True)
        ),
    )
    yield ""


def _named(run: ComparedRun, folder: Path) -> str:
    return f"[{plain(run.name)}]({folder.name}/failures.md): {run.report.verdict.spoken}"


def _again(folder: Path) -> str:
    started, _, command = (folder / "command.txt").read_text(encoding="utf-8").strip().partition("  ")
    return f"{started[:10]} `{command}`"


def _matrix(comparison: Comparison, folders: list[Path]) -> Iterator[str]:
    legend = ", ".join(f"{MARKS[verdict]} {HEADS[verdict]}" for verdict in HEADS)
    yield _MATRIX.format(legend=f"{legend}, {_NOT_THERE} not in that run", fail=MARKS[Verdict.FAIL])
    yield from table(
        ("requirement", "level", *(plain(run.name) for run in comparison.runs)),
        (
            (
                f"**{line.id}** {plain(short(line.text))}",
                line.level,
                *(_cell(line.id, verdict, folder) for verdict, folder in zip(line.verdicts, folders, strict=True)),
            )
            for line in comparison.lines
        ),
    )
    yield ""


def short(text: str) -> str:
    """As many whole words as fit."""
    words = text.replace("`", "")
    return words if len(words) <= _SHORT else f"{words[: _SHORT - 1].rpartition(' ')[0]} …"


def _cell(requirement_id: str, verdict: Verdict | None, folder: Path) -> str:
    if verdict is Verdict.FAIL:
        return f"[{MARKS[verdict]}]({folder.name}/failures.md#{requirement_id.lower()})"
    return MARKS[verdict] if verdict is not None else _NOT_THERE


def _changes(comparison: Comparison, folders: list[Path]) -> Iterator[str]:
    """Of one target alone: between two servers a change says nothing."""
    yield _CHANGES
    for (before, after, changes), (last, folder) in zip(comparison.steps(), pairwise(folders), strict=True):
        if _target(before) != _target(after):
            continue
        yield from (f"### From {plain(before.name)} to {plain(after.name)}", "")
        if changes:
            rows = ((f"**{each.kind}**", *_changed(each, folder)) for each in changes)
            yield from table(("", "requirement", "verdict", ""), rows)
        else:
            yield "Nothing changed."
        yield from ("", *_blocking(last, folder))


def _blocking(before: Path, after: Path) -> Iterator[str]:
    """All that is blocked since this version, whether it passed before or failed, in the order of what blocks it."""
    was, now = ({each["id"]: blocked_by(each) for each in requirements(folder).values()} for folder in (before, after))
    for cause in dict.fromkeys(filter(None, now.values())):
        if new := [each for each in now if now[each] == cause != was.get(each)]:
            yield from (f"{len(new)} are blocked by {cause} now: {', '.join(new)}.", "")


def _target(run: ComparedRun) -> str:
    return run.name.rpartition(" ")[0]


def _changed(change: Change, folder: Path) -> tuple[str, str, str]:
    found = requirements(folder).get(change.id)
    why = f"blocked by {blocked_by(found)}" if found is not None and blocked_by(found) else ""
    return f"{change.id} {plain(short(change.text))}", change.transition, why

"""failures.md of a run: each requirement that failed, with every scenario that did in a line, and the dialogue of the first; and why the others were not tested."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from continuity_conformance.core.text import cut
from continuity_conformance.report.markdown import code, plain
from pages.kept import failed, requirements

_HEAD = """\
# What failed: {name}

Made by [publish.py](../../../tools/published_results/publish.py) from [results.json](results.json), where every transcript is whole. Here each scenario that failed has a line, and the first of a requirement its dialogue: the last
{lines} lines of it, without header fields that say nothing of sessions, each line cut at {width} characters. [All runs](../README.md).
"""
_LINES, _WIDTH, _SAID = 40, 160, 160
_FIELD = re.compile(r" {12}([A-Za-z][A-Za-z0-9-]*): ")
_TELLING = re.compile(r"session|idempotency|access-control|origin|retry-after|location", re.IGNORECASE)
_AFTER = "\n\n  Why it matters:"


def page(folder: Path) -> str:
    found = requirements(folder).values()
    lines = [_HEAD.format(name=folder.name, lines=_LINES, width=_WIDTH)]
    lines += [line for each in found if each["verdict"] == "fail" for line in _failure(each)]
    for verdict in ("not tested", "not applicable"):
        lines += [f"## {verdict.capitalize()}", "", *_reasons([each for each in found if _spoken(each) == verdict]), ""]
    return "\n".join(lines)


def _spoken(requirement: dict[str, Any]) -> str:
    return str(requirement["verdict"]).replace("_", " ")


def _failure(requirement: dict[str, Any]) -> Iterator[str]:
    yield from (f"## {requirement['id']}", "", f"{requirement['level']}: {plain(requirement['text'], 1000)}", "")
    yield from (_line(evidence) for evidence in failed(requirement))
    first = failed(requirement)[0]
    dialogue = list(_dialogue(first))
    if dialogue:
        fence = "`" * (max((len(ticks) for ticks in re.findall("`{3,}", "\n".join(dialogue))), default=2) + 1)
        yield from ("", f"{fence}text", *dialogue, fence)
    yield ""


def _line(evidence: dict[str, Any]) -> str:
    where = ", ".join(plain(part) for part in (evidence["scenario"], evidence["example"]) if part)
    step = f"step {evidence['step'].partition(' ')[0]}" if evidence["step"] else ""
    at = ", ".join(part for part in (where, step, evidence["expectation"]) if part)
    return f"- {at}: expected {code(evidence['expected'], _SAID)}, actual {code(evidence['actual'], _SAID)}"


def _dialogue(evidence: dict[str, Any]) -> Iterator[str]:
    """What was sent and answered, and what was done between; where that is nothing, what was found, whole."""
    told = evidence["failure"].partition(f"actual    {evidence['actual']}\n")[2].partition(_AFTER)[0]
    lines = [line for line in told.strip("\n").splitlines() if _tells(line)]
    if not lines and len(evidence["actual"]) > _SAID:
        lines = evidence["actual"].splitlines()
    if len(lines) > _LINES:
        yield f"  … {len(lines) - _LINES} lines before"
    yield from (cut(line.rstrip(), _WIDTH) for line in lines[-_LINES:])


def _tells(line: str) -> bool:
    field = _FIELD.match(line)
    return field is None or bool(_TELLING.search(field[1]))


def _reasons(found: list[dict[str, Any]]) -> Iterator[str]:
    """Each reason once, with the requirements that it is about."""
    by_reason: dict[str, list[str]] = {}
    for each in found:
        by_reason.setdefault(each["reason"], []).append(each["id"])
    yield from (f"- {plain(reason)}: {', '.join(ids)}" for reason, ids in by_reason.items())

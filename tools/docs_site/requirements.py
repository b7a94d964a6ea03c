"""A page for each requirement, and the list of all of them by class."""

import re
from collections.abc import Iterator
from dataclasses import replace

from continuity_conformance.report.page import MARKS
from continuity_conformance.suite.explanation import markdown_page
from continuity_spec import Requirement, Spec, load_spec
from continuity_spec.load.entry_source import entry_source
from docs_site import sequence
from docs_site.verdicts import PublishedRun, evidence, published_runs

FOLDER = "reference/requirements"
LISTS = ("reference/spec.md", "reference/classes.md")
"""Pages in docs/ whose ids lead to the pages of the requirements."""
_IN_BOLD = re.compile(r"\*\*([A-Z]+-\d{2})\*\*")
_IN_BRACKETS = re.compile(r"\[((?:[A-Z]+-\d{2}(?:, )?)+)\](?!\()")
_IN_ROW = re.compile(r"^\| ([A-Z]+-\d{2}) \|", re.MULTILINE)
_INTRODUCTION = """\
# Requirements

All {count} requirements of release {release}, by [class](../classes.md), in the order in which they are easiest to build. Each page has the reason, the dialogue that checks it, the defects that it must catch,
and what real servers do. [The spec as one document](../spec.md) has the same sentences with the protocol around them.
"""


def with_links(markdown: str) -> str:
    """The text of one of the lists, in which ids are links."""
    text = _IN_BOLD.sub(lambda found: f"**{_link(found[1])}**", markdown)
    text = _IN_BRACKETS.sub(lambda found: f"({', '.join(map(_link, found[1].split(', ')))})", text)
    return _IN_ROW.sub(lambda found: f"| {_link(found[1])} |", text)


def _link(identity: str) -> str:
    return f"[{identity}](requirements/{identity}.md)"


def pages() -> dict[str, str]:
    spec = load_spec()
    known = {each.id for each in spec.requirements}
    writer = replace(
        markdown_page(),
        draw=sequence.draw,
        link=lambda identity: f"[{identity}]({identity}.md)" if identity in known else identity,
    )
    runs = published_runs()
    made = {
        f"{FOLDER}/{each.id}.md": _page(writer.render(each, entry_source(each)), each, runs)
        for each in spec.requirements
    }
    return {f"{FOLDER}/index.md": "\n".join(_index(spec)), **made}


def _page(text: str, requirement: Requirement, runs: list[PublishedRun]) -> str:
    rows = [(run, run.verdicts[requirement.id]) for run in runs if requirement.id in run.verdicts]
    lines = [
        f"| {run.title} | [{MARKS[verdict]} {verdict.spoken}]({evidence(run, requirement.id, '../../results')}) |"
        for run, verdict in rows
    ]
    table = ["", "## On real servers", "", "| server | verdict |", "|---|---|", *lines, ""] if lines else []
    return text + "\n".join(table)


def _index(spec: Spec) -> Iterator[str]:
    release = max(spec.releases, key=lambda name: tuple(map(int, name.split("."))))
    yield _INTRODUCTION.format(count=len(spec.requirements), release=release)
    for each in spec.classes:
        yield from (f"## {each.name}", "", each.claim, "", "| requirement | level | text |", "|---|---|---|")
        for identity in each.ids:
            entry = spec.requirement(identity)
            yield f"| [{identity}]({identity}.md) | {entry.level.value} | {' '.join(entry.text.split()).replace('|', '¦')} |"
        yield ""
    drafts = [each for each in spec.requirements if not each.class_name]
    if drafts:
        yield from ("## Drafts", "", "| requirement | level | text |", "|---|---|---|")
        yield from (f"| [{each.id}]({each.id}.md) | {each.level.value} | {each.text} |" for each in drafts)

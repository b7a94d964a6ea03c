"""What each server does: by class, by requirement, from version to version, and every verdict of each run with its reason."""

from collections.abc import Iterator
from html import escape

from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.report.page import MARKS
from continuity_spec import ConformanceClass, Spec, load_spec
from docs_site.verdicts import PublishedRun, evidence, newest_runs, published_runs

PAGE = "results/compatibility.md"
_INTRODUCTION = """\
# Which server keeps what

The newest version of each server, by [conformance class](../reference/classes.md). Open a class to see its requirements. Every cell leads to its evidence: the transcript of a failure, or the verdict with its
reason. [About these runs](README.md).

<p class="legend" markdown="0"><span class="cell pass">✓ all that applies</span> <span class="cell some">a part</span> <span class="cell fail">✗ fails</span> <span class="cell not_tested">? not tested</span>
<span class="cell not_applicable">- not applicable</span> <span class="cell">· not in that run</span></p>
"""
_TREND = """\

## From version to version

How many requirements passed, failed, were not tested and did not apply in each version of a server that was run in several. A run of an earlier kit had fewer requirements.
"""


def pages() -> dict[str, str]:
    return {
        PAGE: "\n".join(_page(load_spec())),
        **{f"results/{run.folder}/verdicts.md": "\n".join(_verdicts(run)) for run in published_runs()},
    }


def _page(spec: Spec) -> Iterator[str]:
    runs = newest_runs()
    yield _INTRODUCTION
    yield '<div class="matrix" markdown="0">'
    for each in spec.classes:
        yield from _class(each, spec, runs)
    yield "</div>"
    yield _TREND
    yield from _trend()


def _class(each: ConformanceClass, spec: Spec, runs: list[PublishedRun]) -> Iterator[str]:
    cells = "".join(_class_cell(run, each.name) for run in runs)
    yield f'<details><summary><b>{each.name}</b> <span class="claim">{escape(each.claim)}</span><span class="row">{cells}</span></summary>'
    yield '<table><thead><tr><th scope="col">requirement</th>'
    yield (
        "".join(f'<th scope="col">{escape(run.server)}<br>{escape(run.version)}</th>' for run in runs)
        + "</tr></thead><tbody>"
    )
    for identity in each.ids:
        text = escape(" ".join(spec.requirement(identity).text.split()))
        link = f'<a href="../reference/requirements/{identity}.html" title="{text}">{identity}</a>'
        yield f'<tr><th scope="row">{link}</th>{"".join(_cell(run, identity) for run in runs)}</tr>'
    yield "</tbody></table></details>"


def _class_cell(run: PublishedRun, name: str) -> str:
    found = run.classes.get(name)
    if found is None or not found["applicable"]:
        word, style = ("-", "not_applicable") if run.classes else ("earlier kit", "not_tested")
        return _box(run, style, word, "verdicts")
    passed, applicable = found["passed"], found["applicable"]
    style = "pass" if found["verdict"] == "conformant" else "fail" if not passed else "some"
    return _box(run, style, f"{'✓ ' if style == 'pass' else ''}{passed} of {applicable}", "failures")


def _box(run: PublishedRun, style: str, word: str, page: str) -> str:
    link = f"{run.folder}/{page}.html"
    return f'<a class="cell {style}" href="{link}" title="{escape(run.title)}"><small>{escape(run.server)}</small> {word}</a>'


def _cell(run: PublishedRun, identity: str) -> str:
    verdict = run.verdicts.get(identity)
    if verdict is None:
        return '<td class="cell" title="not in that run">·</td>'
    link = evidence(run, identity, ".").removeprefix("./").replace(".md#", ".html#")
    return f'<td class="cell {verdict.value}"><a href="{link}" title="{escape(run.title)}: {verdict.spoken}">{MARKS[verdict]}</a></td>'


def _trend() -> Iterator[str]:
    by_server: dict[str, list[PublishedRun]] = {}
    for run in published_runs():
        by_server.setdefault(run.server, []).append(run)
    for server, runs in by_server.items():
        if len(runs) > 1:
            yield from (f"### {server}", "", '<div class="trend" markdown="0">', *map(_bar, runs), "</div>", "")


def _bar(run: PublishedRun) -> str:
    counts = {verdict: sum(found is verdict for found in run.verdicts.values()) for verdict in Verdict}
    parts = "".join(
        f'<span class="cell {verdict.value}" style="flex-grow:{count}" title="{count} {verdict.spoken}">{count}</span>'
        for verdict, count in counts.items()
        if count
    )
    return f'<a class="version" href="{run.folder}/failures.html"><b>{escape(run.version)}</b><span class="bar">{parts}</span></a>'


def _verdicts(run: PublishedRun) -> Iterator[str]:
    data = run.data
    yield f"# Verdicts: {run.title}"
    yield f"\nRelease {data['release']} of the spec, {data['started'][:10]}. [What failed, with transcripts](failures.md). [results.json](results.json) has the same for programs.\n"
    yield from ("| requirement | verdict | reason |", "|---|---|---|")
    for each in data["requirements"]:
        verdict = Verdict(each["verdict"])
        word = f"{MARKS[verdict]} {verdict.spoken}"
        shown = f"[{word}](failures.md#{each['id'].lower()})" if verdict is Verdict.FAIL else word
        yield f'| <a id="{each["id"].lower()}"></a>{_linked(each["id"])} | {shown} | {_plain(each["reason"])} |'


def _linked(identity: str) -> str:
    known = {each.id for each in load_spec().requirements}
    return f"[{identity}](../../reference/requirements/{identity}.md)" if identity in known else identity


def _plain(text: str) -> str:
    """A text of a server as plain text in a cell."""
    line = escape(" ".join(text.split()), quote=False)
    return "".join(f"\\{letter}" if letter in "\\`*_[]#" else "¦" if letter == "|" else letter for letter in line)

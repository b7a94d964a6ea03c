"""The picture at the top of README: a finding on a real server, drawn from the results that are published. `python tools/docs_site/finding.py` writes it."""

import json
import re
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

_TOOLS = Path(__file__).parents[1]
sys.path[:0] = [str(_TOOLS)]

from docs_site.repository import DOCS  # noqa: E402 - it is a program too

PICTURE = DOCS / "assets" / "finding.svg"
RUN, REQUIREMENT = "hermes-0.19.0", "HISTORY-02"
_WIDTH, _ROW = 860, 74
_LANES = {"client": 70, "server": 430, "model": 790}
_SAID = re.compile(r'"input": "\[u:[0-9a-f]+\] (\w+)"')
_SAW = re.compile(r"the model saw: (\[.*\])")
_STYLE = """\
<style>
  text { font: 15px ui-sans-serif, system-ui, sans-serif; fill: #1f2430 } .lane { font-weight: 700; text-anchor: middle } .note { font-size: 13px; fill: #5b6270 }
  line { stroke: #5b6270; stroke-width: 1.5 } .life { stroke: #c9ced8 } .wrong { fill: #b3151f; font-weight: 700 } .wrong-line { stroke: #b3151f; stroke-width: 2 } rect { fill: #fff; stroke: #d9dde5 }
</style>"""


def picture() -> str:
    """The dialogue of the first scenario that failed: what the client said, and what the model saw."""
    results = json.loads((DOCS / "results" / RUN / "results.json").read_text(encoding="utf-8"))
    found = next(each for each in results["requirements"] if each["id"] == REQUIREMENT)
    evidence = found["evidence"][0]
    turns = list(
        zip(_SAID.findall(evidence["failure"]), map(json.loads, _SAW.findall(evidence["failure"])), strict=True)
    )
    height = 150 + _ROW * len(turns)
    return "\n".join((*_head(results, found, height), *_turns(turns), *_foot(evidence, height), "</svg>", ""))


def _head(results: dict[str, object], found: dict[str, str], height: int) -> Iterator[str]:
    name = results["target"]["name"]  # type: ignore[index]
    title = f"{name}: {REQUIREMENT} fails. {found['text']}"
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">'
    yield from (_STYLE, f'<rect x="1" y="1" width="{_WIDTH - 2}" height="{height - 2}" rx="8"/>')
    for lane, x in _LANES.items():
        label = f"{name}" if lane == "server" else lane
        yield f'<text class="lane" x="{x}" y="32">{escape(str(label))}</text>'
        yield f'<line class="life" x1="{x}" y1="44" x2="{x}" y2="{height - 82}"/>'


def _turns(turns: list[tuple[str, list[str]]]) -> Iterator[str]:
    earlier: list[str] = []
    for number, (said, saw) in enumerate(turns):
        y = 82 + _ROW * number
        right = [*earlier, said]
        wrong = saw != right
        text = ", ".join(word.removesuffix(" (no answer)") for word in saw)
        yield from _arrow("client", "server", y, f"says “{escape(said)}”", wrong=False)
        yield from _arrow("server", "model", y, f"model sees: {escape(text)}", wrong=wrong)
        yield from _arrow("server", "client", y + 26, "200, the same session", wrong=False)
        earlier.append(said)


def _arrow(start: str, end: str, y: int, text: str, *, wrong: bool) -> Iterator[str]:
    x1, x2 = _LANES[start], _LANES[end]
    head = -9 if x2 > x1 else 9
    style = ' class="wrong-line"' if wrong else ""
    yield f'<line{style} x1="{x1}" y1="{y}" x2="{x2}" y2="{y}"/>'
    yield f'<path d="M{x2} {y} l{head} -5 v10 z" fill="{"#b3151f" if wrong else "#5b6270"}"/>'
    yield f'<text class="{"wrong" if wrong else "note"}" x="{min(x1, x2) + 16}" y="{y - 7}">{text}</text>'


def _foot(evidence: dict[str, str], height: int) -> Iterator[str]:
    actual = ", ".join(word.removesuffix(" (no answer)") for word in evidence["actual"].split(", "))
    yield f'<text class="wrong" x="24" y="{height - 46}">{REQUIREMENT}: expected {escape(evidence["expected"])}, actual {escape(actual)}</text>'
    yield f'<text class="note" x="24" y="{height - 22}">No error, no warning: the client gets 200 and the right id. Only the model sees the first turn twice.</text>'


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")

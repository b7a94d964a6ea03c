"""The commands that README and docs show: where they stand, what they print, and how a test runs them.

A block of the language `console` has commands after `$ ` and what they print below. `…` in the output stands for anything. A comment `<!-- URL: continuity serve … -->` on a page says which
server its addresses mean; without one it is the bundled server.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEFT_OUT = ("docs/results/", "docs/explanation/decisions/", "docs/reference/mutants.md", "docs/reference/benchmarks.md")
"""Pages that tell what was done when they were written."""
BLOCK = re.compile(r"^(?P<indent> *)```console\n(?P<text>.*?)^ *```", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^ *(?P<fence>`{3,}).*?^ *(?P=fence)", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`((?:continuity|session-continuity|pytest --target|make|python tools/)[^`\n]*)`")
SERVER = re.compile(r"<!-- URL: continuity serve (?P<arguments>.*?) *-->")
DEFAULT_SERVER = "--port 8080"
ADDRESSES = re.compile(r"\bURL\b|https?://127\.0\.0\.1:(?:8080|8642)(?!/v1)|https://gateway\.example/api/v1")


AREA = re.compile(r"[A-Z]+ +\d+   \d+ (?:passed|failed|error|not )")
"""The line that a run prints when an area is decided."""
UNDER_WAY = re.compile(r"\d+ of \d+ · ")
"""The line that a run prints every ten seconds."""


@dataclass(frozen=True)
class Shown:
    """A command of a page, without its comment, and the output below it; None where none is shown."""

    command: str
    output: str | None = None


def pages() -> list[Path]:
    found = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "examples").rglob("*.md")),
    ]
    return [
        page
        for page in found
        if not str(page.relative_to(ROOT)).startswith(LEFT_OUT) and "node_modules" not in page.parts
    ]


def in_blocks(text: str) -> Iterator[Shown]:
    """The commands of all console blocks, in their order."""
    for block in BLOCK.finditer(text):
        lines = [line.removeprefix(block["indent"]) for line in block["text"].splitlines()]
        starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            output = "\n".join(lines[start + 1 : end])
            yield Shown(without_comment(lines[start].removeprefix("$ ")), output or None)


def inline(text: str) -> Iterator[str]:
    """The commands in the sentences of a page."""
    return (without_comment(found) for found in INLINE.findall(FENCED.sub("", text)))


def without_comment(command: str) -> str:
    return re.sub(r"\s{2,}#.*$", "", command).strip()


def server_of(text: str) -> str:
    found = SERVER.search(text)
    return found["arguments"] if found else DEFAULT_SERVER


def matches(shown: str, printed: str) -> bool:
    """Whether this was printed: `…` stands for anything, and trailing blanks do not count."""
    pattern = r"[\s\S]*?".join(re.escape(part) for part in _trimmed(shown).split("…"))
    return re.fullmatch(pattern, _trimmed(printed)) is not None


def _trimmed(text: str) -> str:
    """Without trailing blanks, and with the areas of a run in one order: they are printed as they are decided."""
    lines = [line.rstrip() for line in text.strip().splitlines() if not UNDER_WAY.match(line)]
    areas = sorted(line for line in lines if AREA.match(line))
    return "\n".join([*areas, *(line for line in lines if not AREA.match(line))])


def words(command: str) -> list[str]:
    return shlex.split(command, comments=True)

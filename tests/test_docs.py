"""The pages: links lead somewhere, ARCHITECTURE.md stays on one page, and decision pages have one form. No network is used."""

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("docs", "spec", "tools")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
DECISIONS = ROOT / "docs" / "explanation" / "decisions"
DECISION_PAGES = sorted(DECISIONS.glob("[0-9]*.md"))
MOST_WORDS = 900
HOME = ROOT / "docs" / "index.md"
MADE_BY_THE_SITE = {"results/compatibility.md", "llms.txt"}
"""Pages that only the site has. Its home page alone may link to them: other pages are read without it too."""

_FENCED = re.compile(r"^(?P<fence>`{3,}|~{3,}).*?^(?P=fence)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?P<ticks>`+)(?:(?!\n\n).)+?(?P=ticks)", re.DOTALL)
_LINK = re.compile(r"\]\(\s*<?(?P<link>[^\s)>]+)>?[^)]*\)")
_HEADING = re.compile(r"^#{1,6} +(?P<text>.+?) *#*$", re.MULTILINE)
_NAMED = re.compile(r'<\w+ [^>]*\b(?:id|name)="(?P<anchor>[^"]+)"')
_LINKED_TEXT = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def relative_links(page: Path) -> list[str]:
    """The links of a page to files of this project, without those in code."""
    prose = _CODE.sub("", _FENCED.sub("", page.read_text(encoding="utf-8")))
    return [link for link in _LINK.findall(prose) if not _ELSEWHERE.match(link)]


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page: its headings as GitHub names them, and those in HTML tags."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    names: list[str] = []
    for heading in _HEADING.findall(text):
        words = _LINKED_TEXT.sub(r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        repeated = names.count(anchor)
        names.append(anchor)
        names += [f"{anchor}-{repeated}"] * bool(repeated)
    return {*names, *_NAMED.findall(text)}


def leads_nowhere(page: Path, link: str) -> bool:
    path, _, anchor = unquote(link).partition("#")
    linked = (page.parent / path).resolve() if path else page
    return not linked.exists() or (bool(anchor) and linked.suffix == ".md" and anchor not in anchors(linked))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_relative_link_leads_to_a_file_and_its_anchor(page):
    known = MADE_BY_THE_SITE if page == HOME else set()

    assert {link for link in relative_links(page) if leads_nowhere(page, link)} == known


def test_links_are_found_outside_of_code(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b`, c\n[x](a.md#b 'title') `[y](c.md)` [z](https://example.org)\n```\n[w](d.md)\n```\n## A b c\n"
    )

    assert relative_links(page) == ["a.md#b"]
    assert anchors(page) == {"a-b-c", "a-b-c-1"}
    assert leads_nowhere(page, "a.md")
    assert leads_nowhere(page, "#b")
    assert not leads_nowhere(page, "page.md#a-b-c-1")


def test_architecture_fits_on_one_page():
    assert len((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split()) <= MOST_WORDS


@pytest.mark.parametrize("page", DECISION_PAGES, ids=name)
def test_a_decision_has_context_decision_and_consequences(page):
    lines = page.read_text(encoding="utf-8").splitlines()

    assert lines[0].startswith("# ")
    assert [line for line in lines if line.startswith("## ")] == ["## Context", "## Decision", "## Consequences"]


def test_the_index_lists_every_decision_once_with_its_title():
    index = (DECISIONS / "README.md").read_text(encoding="utf-8")
    titles = [page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for page in DECISION_PAGES]
    rows = [f"| [{page.name[:2]}]({page.name}) | {title} |" for page, title in zip(DECISION_PAGES, titles, strict=True)]

    assert [line for line in index.splitlines() if line.startswith("| [")] == rows


def test_every_decision_has_its_own_number():
    assert [page.name[:2] for page in DECISION_PAGES] == [
        f"{number:02}" for number in range(1, len(DECISION_PAGES) + 1)
    ]


HOW_A_RUN_WORKS = ROOT / "docs" / "explanation" / "how-a-run-works.md"
STEPS = [line for line in HOW_A_RUN_WORKS.read_text(encoding="utf-8").splitlines() if re.match(r"\| \[.*\.py\]", line)]


@pytest.mark.parametrize("row", STEPS, ids=[row.split("]")[0].removeprefix("| [") for row in STEPS])
def test_the_names_in_a_row_of_how_a_run_works_are_in_its_files(row):
    files, names = row.split("|")[1:3]
    code = "".join(
        (HOW_A_RUN_WORKS.parent / path).read_text(encoding="utf-8") for path in re.findall(r"\]\((.+?)\)", files)
    )
    defined = set(re.findall(r"^\s*(?:async )?(?:def|class) (\w+)|^(\w+)(?:: [^=]+)? = ", code, re.MULTILINE))

    assert set(re.findall(r"`(\w+)`", names)) <= {name for pair in defined for name in pair}

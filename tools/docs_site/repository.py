"""Which page of the site shows which file of the project, and links between them.

A page in docs/ keeps its place. Any other file that a page links to gets a page under source/: Markdown as it is, everything else as a block of code, and a
folder as a list of its files.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
_LANGUAGES: Final = {
    ".py": "python",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".mjs": "js",
    ".toml": "toml",
    ".ts": "ts",
}
_COPIED: Final = {".svg", ".png", ".json", ".yaml", ".txt"}
"""Files in docs/ that are copied as they are."""
_LINKS: Final = re.compile(
    r"(?P<fence>^(?P<mark>`{3,}|~{3,}).*?^(?P=mark)[ ]*$)|(?P<code>(?P<ticks>`+)(?:(?!\n\n).)+?(?P=ticks))|\]\((?P<link>[^\s)]+)(?P<rest>[^)]*)\)",
    re.MULTILINE | re.DOTALL,
)
_ELSEWHERE: Final = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.IGNORECASE)


def page_of(file: Path) -> str:
    """The page that shows a file or a folder: its path in the site, as mkdocs writes it."""
    if file.is_relative_to(DOCS) and (file.suffix == ".md" or file.suffix in _COPIED):
        return file.relative_to(DOCS).as_posix()
    if file.is_dir():
        return page_of(file / "README.md") if (file / "README.md").is_file() else f"source/{_inside(file)}/index.md"
    return f"source/{_inside(file)}" if file.suffix == ".md" else f"source/{_inside(file)}.md"


def source_pages(texts: dict[Path, str]) -> dict[str, str]:
    """The pages under source/ that these texts of files need, and those that the new pages need in turn."""
    pages: dict[str, str] = {}
    waiting = [target for file, text in texts.items() for target in targets(file, text)]
    while waiting:
        target = waiting.pop()
        page = page_of(target)
        if not page.startswith("source/") or page in pages:
            continue
        pages[page] = _shown(target)
        if target.suffix == ".md":
            waiting += targets(target, pages[page])
        elif target.is_dir():
            waiting += _files(target)
    return pages


def targets(file: Path, text: str) -> Iterator[Path]:
    """The files and folders of the project that a file links to."""
    for found in _LINKS.finditer(text):
        if found["link"] and not _ELSEWHERE.match(found["link"]):
            target = _target(file, found["link"])
            if target is not None:
                yield target


def relinked(file: Path, text: str) -> str:
    """The text of a file with links that lead to the pages of the site."""

    def replaced(found: re.Match[str]) -> str:
        link = found["link"]
        target = _target(file, link) if link and not _ELSEWHERE.match(link) else None
        if target is None:
            return found[0]
        anchor = link.partition("#")[2]
        way = os.path.relpath(page_of(target), Path(page_of(file)).parent)
        return f"]({quote(way)}{f'#{anchor}' if anchor else ''}{found['rest']})"

    return _LINKS.sub(replaced, text)


def file_of(page: str) -> Path | None:
    """The file of the project that a page shows. None for a page that is generated."""
    if not page.startswith("source/"):
        return DOCS / page if (DOCS / page).is_file() else None
    inside = page.removeprefix("source/")
    candidates = (ROOT / inside, ROOT / inside.removesuffix(".md"), ROOT / inside.removesuffix("/index.md"))
    return next((each for each in candidates if each.exists()), None)


def _target(file: Path, link: str) -> Path | None:
    path = unquote(link.partition("#")[0])
    target = (file.parent / path).resolve()
    return target if path and target.exists() and target.is_relative_to(ROOT) else None


def _inside(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def _files(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if not each.name.startswith((".", "_")))


def _shown(target: Path) -> str:
    if target.is_dir():
        lines = [
            f"- [{each.name}]({quote(os.path.relpath(page_of(each), page_of(target).rpartition('/')[0]))})"
            for each in _files(target)
        ]
        return "\n".join((f"# {_inside(target)}", "", *lines, ""))
    text = target.read_text(encoding="utf-8")
    if target.suffix == ".md":
        return text
    fence = "`" * (3 + 3 * ("```" in text))
    return f"# {target.name}\n\n`{_inside(target)}`\n\n{fence}{_LANGUAGES.get(target.suffix, 'text')}\n{text.rstrip()}\n{fence}\n"

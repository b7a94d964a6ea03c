"""What mkdocs calls while it builds the site: it adds the generated pages, makes links to other files of the project work, and writes the files for coding agents."""

import json
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_TOOLS = Path(__file__).parents[1]
sys.path[:0] = [str(folder) for folder in (_TOOLS, _TOOLS / "matrix", _TOOLS / "published_results")]

from docs_site import (  # noqa: E402 - mkdocs loads this file without its package
    agent_files,
    commands,
    committed,
    compatibility,
    openapi,
    plugin_api,
    repository,
    requirements,
    schemas,
)

_GENERATORS = (requirements, commands, plugin_api, schemas, openapi, compatibility)
_NOT_SEARCHED = ("source/", "results/", "reference/mutants", "reference/matrix")
_SECTIONS = {"How-to guides": "how-to", "Explanation": "explanation"}
"""Parts of the navigation that list every page of a folder: those that mkdocs.yml names first, then the others."""
_LOG = get_plugin_logger("docs_site")
"""A warning ends the build."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    for section in config.nav or []:
        for title, entries in section.items():
            if title in _SECTIONS:
                entries.extend(_others(_SECTIONS[title], entries))
    return config


def on_pre_build(config: MkDocsConfig) -> None:  # noqa: ARG001 - mkdocs names it
    for sentence in committed.stale():
        _LOG.warning(sentence)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    made = {page: text for generator in _GENERATORS for page, text in generator.pages().items()}
    texts = {path: path.read_text(encoding="utf-8") for path in repository.DOCS.rglob("*.md")}
    made |= repository.source_pages(texts)
    made["llms.txt"] = agent_files.index()
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - mkdocs names them
    """Links to files lead to the pages that show them. Long pages of evidence and source code are left out of the search."""
    source = page.file.src_uri
    if source.startswith(_NOT_SEARCHED):
        page.meta["search"] = {"exclude": True}
    if source in requirements.LISTS:
        markdown = requirements.with_links(markdown)
    file = repository.file_of(source)
    return repository.relinked(file, markdown) if file is not None and file.suffix == ".md" else markdown


def on_post_build(config: MkDocsConfig) -> None:
    for name, text in agent_files.files().items():
        _write(config, name, text)
    _write(config, "reference/requirements.json", json.dumps(agent_files.facts(), indent=1, ensure_ascii=False))


def _others(folder: str, entries: list[Any]) -> list[str]:
    named = {path for entry in entries for path in (entry.values() if isinstance(entry, dict) else [entry])}
    found = sorted(path.relative_to(repository.DOCS).as_posix() for path in (repository.DOCS / folder).glob("*.md"))
    return [path for path in found if path not in named]


def _write(config: MkDocsConfig, name: str, text: str) -> None:
    path = Path(config.site_dir, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")

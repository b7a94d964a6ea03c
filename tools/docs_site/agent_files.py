"""Files for coding agents, beside the pages: llms.txt, each requirement as plain Markdown, each page as it was written, and the skill."""

from collections.abc import Iterator

from continuity_conformance.suite.explanation import as_json, as_markdown
from continuity_spec import load_spec
from docs_site.repository import DOCS

_HEAD = """\
# Session Continuity

> A spec for servers that keep conversations (OpenAI-compatible agent gateways), a kit that tells whether a server keeps it (`continuity check URL`), and a small server that does.

To fix a server, read [the skill](agents/SKILL.md) first. `continuity explain ID --json` prints a requirement for programs. Each link leads to plain Markdown.
"""
_SECTIONS = {
    "Start": (
        "agents/SKILL.md",
        "tutorial/first-verdict.md",
        "tutorial/first-fixed-cause.md",
        "how-to/build-a-server.md",
    ),
    "The spec": ("reference/spec.md", "reference/classes.md", "reference/vocabulary.md", "reference/probe.md"),
    "How to": ("how-to/*.md",),
    "Explanation": ("explanation/*.md",),
}


def files() -> dict[str, str]:
    """Plain Markdown by its path in the site: each requirement, and each page as it was written."""
    requirements = {f"reference/requirements/{each.id}.md": as_markdown(each) for each in load_spec().requirements}
    written = {
        path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8")
        for path in DOCS.rglob("*.md")
        if "results" not in path.parts
    }
    return {**requirements, **written}


def index() -> str:
    """llms.txt: what there is to read, one line each."""
    return "\n".join(_index())


def facts() -> list[dict[str, object]]:
    """All requirements as JSON, as `continuity explain --json` prints them."""
    return [as_json(each) for each in load_spec().requirements]


def _index() -> Iterator[str]:
    yield _HEAD
    for title, patterns in _SECTIONS.items():
        yield from (f"## {title}", "")
        for path in (path for pattern in patterns for path in sorted(DOCS.glob(pattern))):
            yield f"- [{_title(path.read_text(encoding='utf-8'))}]({path.relative_to(DOCS).as_posix()})"
        yield ""
    yield from ("## Requirements", "")
    for each in load_spec().requirements:
        yield f"- [{each.id}](reference/requirements/{each.id}.md): {' '.join(each.text.split())}"
    yield ""


def _title(text: str) -> str:
    return next(line.removeprefix("# ") for line in text.splitlines() if line.startswith("# "))

"""What the documentation site is made of: every requirement, command, field and verdict has its place, and links lead to pages."""

import json
from pathlib import Path

import pytest
from docs_site import (
    agent_files,
    commands,
    committed,
    compatibility,
    openapi,
    plugin_api,
    repository,
    requirements,
    schemas,
    sequence,
)
from docs_site.repository import DOCS, ROOT
from docs_site.verdicts import published_runs

from continuity_conformance.cli.main import COMMANDS
from continuity_spec import load_spec
from continuity_spec.load.schema import schema
from continuity_spec.openapi.document import load_openapi

SPEC = load_spec()
REQUIREMENT_PAGES = requirements.pages()


@pytest.mark.parametrize("entry", SPEC.requirements, ids=lambda entry: entry.id)
def test_a_requirement_has_a_page_with_its_text_its_scenarios_and_its_defects(entry):
    page = REQUIREMENT_PAGES[f"reference/requirements/{entry.id}.md"]

    assert " ".join(entry.text.split()) in page
    assert page.count('<div class="sequence"') == len(entry.scenarios) + (entry.always is not None)
    assert [name for name in entry.refuted_by if f"`{name}`" not in page] == []


def test_the_list_names_every_requirement():
    assert [
        entry.id
        for entry in SPEC.requirements
        if f"[{entry.id}]" not in REQUIREMENT_PAGES["reference/requirements/index.md"]
    ] == []


def test_every_command_and_every_action_is_on_the_page_of_commands():
    page = commands.pages()[commands.PAGE]

    assert [name for name in COMMANDS if f"\n## continuity {name}\n" not in page] == []
    assert "\n### continuity spec openapi\n" in page
    assert "--accept-untested" in page


def test_every_field_of_a_profile_and_of_the_results_is_on_its_page():
    pages = schemas.pages()

    assert [
        name for name in schema("profile")["properties"] if f"| `{name}`" not in pages["reference/profile.md"]
    ] == []
    assert [
        name for name in schema("results")["properties"] if f"| `{name}`" not in pages["reference/results-schema.md"]
    ] == []


def test_every_operation_is_on_the_page_of_the_api():
    page = openapi.pages()["reference/http-api.md"]

    assert [path for path in load_openapi()["paths"] if f" {path}\n" not in page] == []


def test_everything_public_is_on_the_page_of_the_plugin_api():
    page = plugin_api.pages()[plugin_api.PAGE]

    assert [name for name in plugin_api.plugin.__all__ if f"\n## {name}\n" not in page] == []


def test_every_verdict_that_is_published_has_an_anchor():
    pages = compatibility.pages()

    for run in published_runs():
        verdicts = pages[f"results/{run.folder}/verdicts.md"]
        assert [identity for identity in run.verdicts if f'<a id="{identity.lower()}">' not in verdicts] == []


def test_a_class_of_the_matrix_has_a_cell_for_each_server():
    page = compatibility.pages()[compatibility.PAGE]
    servers = {run.server for run in published_runs()}

    assert page.count('<a class="cell') == len(servers) * len(SPEC.classes)


def test_committed_pages_are_what_their_programs_write():
    assert list(committed.stale()) == []


def test_a_stale_page_is_named_with_the_command_that_writes_it(monkeypatch):
    monkeypatch.setattr(committed.classes, "page", lambda _: "older")

    assert list(committed.stale()) == ["docs/reference/classes.md is stale. Run: python tools/prose/classes.py"]


def test_a_link_to_a_file_outside_of_docs_leads_to_its_page():
    page = DOCS / "how-to" / "page.md"
    text = "[a](../../spec/continuity_spec/openapi.yaml) [b](gate.md#classes) `[c](../../LICENSE)` [d](https://example.org)"

    assert repository.relinked(page, text) == (
        "[a](../source/spec/continuity_spec/openapi.yaml.md) [b](gate.md#classes) `[c](../../LICENSE)` [d](https://example.org)"
    )
    assert (
        repository.file_of("source/spec/continuity_spec/openapi.yaml.md") == ROOT / "spec/continuity_spec/openapi.yaml"
    )


def test_a_linked_folder_is_a_list_of_its_files():
    pages = repository.source_pages(
        {DOCS / "page.md": "[x](../spec/continuity_spec/vectors/README.md) [y](../spec/continuity_spec/requirements)"}
    )

    assert "[echo.yaml](echo.yaml.md)" in pages["source/spec/continuity_spec/requirements/index.md"]
    assert pages["source/spec/continuity_spec/requirements/echo.yaml.md"].startswith("# echo.yaml\n")
    assert "source/spec/continuity_spec/vectors/README.md" in pages


def test_what_a_scenario_says_is_escaped():
    assert sequence._phrases(("<b>", "a & b")) == "&lt;b&gt;<br>a &amp; b"


def test_llms_txt_names_every_requirement_and_every_guide():
    index = agent_files.index()

    assert [entry.id for entry in SPEC.requirements if f"- [{entry.id}](" not in index] == []
    assert [path.name for path in (DOCS / "how-to").glob("*.md") if f"(how-to/{path.name})" not in index] == []


def test_plain_markdown_has_drawings_of_characters():
    text = agent_files.files()["reference/requirements/SLUG-03.md"]

    assert "```text\n" in text
    assert "<div" not in text


def test_the_facts_for_programs_are_json_with_steps():
    facts = {each["id"]: each for each in json.loads(json.dumps(agent_files.facts()))}

    assert facts["SLUG-03"]["scenarios"][0]["steps"][0]["does"].startswith("respond ")
    assert "slug-forks-on-eviction" in facts["SLUG-03"]["defects"] or facts["SLUG-03"]["defects"]


def test_the_options_page_explains_every_option():
    page = (DOCS / "explanation" / "options.md").read_text(encoding="utf-8")
    options = load_openapi()["components"]["schemas"]["Options"]["properties"]

    assert [name for name in options if f"| `{name}` |" not in page] == []
    assert [value for each in options.values() for value in each["enum"] if f"`{value}`" not in page] == []


def test_the_skill_names_its_commands():
    skill = Path(DOCS / "agents" / "SKILL.md").read_text(encoding="utf-8")

    assert [
        word for word in ("doctor", "check", "explain", "run", "compare") if f"continuity {word}" not in skill
    ] == []

"""The crosswalk names only requirements that exist, and leaves out no statement of the works that it compares."""

import re
from pathlib import Path

import pytest

from continuity_spec import load_spec

PAGE = (Path(__file__).parents[1] / "docs" / "explanation" / "crosswalk.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
IDS = {each.id for each in load_spec().requirements}
AREAS = {each.area for each in load_spec().requirements}
ROWS = {"Open Responses": 17, "Unified Harness Protocol": 22, "Resume Means Resume": 6, "hermes-agent#80921": 5}
OPEN_RESPONSES = {
    "basic-response", "assistant-phase", "response-output-phase-schema", "streaming-response", "websocket-response",
    "websocket-sequential-responses", "websocket-continuation", "websocket-reconnect-store-false-recovery",
    "websocket-previous-response-not-found", "websocket-failed-continuation-evicts-cache", "websocket-compact-new-chain",
    "system-prompt", "tool-calling", "image-input", "multi-turn", "compact-response", "compact-missing-model",
}  # fmt: skip


def rows(title: str) -> list[str]:
    return [line for line in SECTIONS[title].splitlines() if line.startswith("| ")][1:]


def test_every_id_exists():
    assert {found for found in re.findall(r"\b[A-Z]+-\d{2}\b", PAGE) if found.partition("-")[0] in AREAS} <= IDS


@pytest.mark.parametrize(("title", "count"), ROWS.items())
def test_every_statement_has_requirements_or_a_reason(title, count):
    cells = [row.rstrip(" |").rpartition("| ")[2] for row in rows(title)]

    assert len(cells) == count
    assert [cell for cell in cells if not (set(re.findall(r"[A-Z]+-\d{2}", cell)) & IDS or "*none*" in cell)] == []


def test_every_test_of_open_responses_is_there():
    assert {row.split("`")[1] for row in rows("Open Responses")} == OPEN_RESPONSES


def test_what_is_none_of_ours_is_also_in_the_list_at_the_end():
    missing = SECTIONS["What they have and we do not"]

    assert [
        word
        for word in ("WebSocket", "phase", "/responses/compact", "cancelling", "Last-Event-ID")
        if word not in missing
    ] == []

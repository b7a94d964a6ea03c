"""The pages from which a runner in another language is written are complete: words, scripts, endpoints, options and checks."""

import re
from pathlib import Path

import pytest
from prose.vocabulary import PAGE, filled

from continuity_conformance.probe.marks import answer_text, summary_text, system_text, user_text
from continuity_conformance.probe.reply import ModelCall
from continuity_conformance.probe.script import Script
from continuity_conformance.probe.server import Probe
from continuity_conformance.scenario.expect.leaks import _LEAKS
from continuity_conformance.scenario.variables import Variables
from continuity_spec import load_spec
from continuity_spec.lint import RULES
from continuity_spec.load.schema import schema

DOCS = Path(__file__).parents[2] / "docs" / "reference"
VOCABULARY = PAGE.read_text(encoding="utf-8")
PROBE = (DOCS / "probe.md").read_text(encoding="utf-8")
BOTH = VOCABULARY + PROBE
DEFINITIONS = schema("requirements")["$defs"]
MARK = "7f3a9b21"


def properties(name: str) -> list[str]:
    return list(DEFINITIONS[name]["properties"])


def missing(words: list[str]) -> list[str]:
    """The words that are not in code on one of the pages."""
    code = "\n".join(re.findall(r"`[^`\n]+`", BOTH))
    return [word for word in words if re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", code) is None]


@pytest.mark.parametrize(
    "definition",
    [
        "requirement",
        "scenario",
        "always",
        "act",
        "chat",
        "respond",
        "resource",
        "request",
        "evict",
        "legacy",
        "expectations",
    ],
)
def test_every_word_of_the_schema_is_explained(definition):
    assert missing(properties(definition)) == []


def test_steps_without_parameters_and_parts_of_rows_are_explained():
    rows = DEFINITIONS["legacy"]["properties"]["rows"]["items"]["properties"]

    assert missing([*DEFINITIONS["step"]["then"]["enum"], *rows]) == []


def test_every_script_of_the_model_is_explained():
    model = DEFINITIONS["model"]

    assert missing([*model["else"]["enum"], *model["then"]["properties"], *Script.__dataclass_fields__]) == []


def test_every_option_value_of_a_group_is_an_option():
    assert missing(list(DEFINITIONS["when"]["properties"])) == []


def test_every_need_is_explained():
    assert missing(DEFINITIONS["needs"]["items"]["enum"]) == []


def test_every_rule_of_lint_is_listed():
    assert missing([*RULES, "repeated-text"]) == []


def test_every_check_of_the_spec_has_its_algorithm():
    table = VOCABULARY.partition("## Checks")[2].partition("## Lint")[0]
    used = {entry.check for entry in load_spec().requirements if entry.check is not None}

    assert used == set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))


def test_every_endpoint_of_the_probe_is_listed():
    routes = {str(route.resource.canonical) for route in Probe().app().router.routes() if route.resource is not None}
    listed = {re.sub(r"\?.*", "", path) for path in re.findall(r"`(?:GET|PUT|POST) (/[^`]*)`", PROBE)}

    assert {re.sub(r"\{\w+\}", "X", route) for route in routes} <= {re.sub(r"/(M|N)$", "/X", path) for path in listed}


def test_the_fields_of_a_logged_call_are_shown():
    assert [name for name in ModelCall.__dataclass_fields__ if f'"{name}"' not in PROBE] == []


def test_the_texts_of_the_probe_are_those_on_the_page():
    assert answer_text("MARK", 1).replace("#1", "#N") in PROBE
    assert summary_text(1).replace("#1", "#N") in PROBE
    assert user_text(MARK, "red") in PROBE
    assert system_text(MARK, "pirate") in PROBE


def test_the_expression_for_brackets_finds_every_bracket():
    [pattern] = re.findall(r"^\\\[.*$", PROBE, re.MULTILINE)
    brackets = [
        f"[u:{MARK}]",
        f"[s:{MARK}]",
        f"[a:{MARK}#17]",
        "[a:-#3]",
        f"[a:{MARK}#17 saw u:{MARK}]",
        "[sum#18 covers u:1]",
    ]

    assert [bracket for bracket in brackets if re.fullmatch(pattern, bracket) is None] == []


def test_a_fresh_value_has_the_length_that_the_page_gives():
    [length] = re.findall(r"has \*\*(\d+) characters\*\*", VOCABULARY)

    assert len(Variables({}, {}).text("${salt}")) == int(length)


def test_the_expressions_for_leaks_are_those_of_the_kit():
    listed = dict(re.findall(r"^(a trace|a path|SQL) +(\S.*)$", VOCABULARY, re.MULTILINE))

    assert listed == {what: pattern.pattern.replace('\\"', '"') for what, pattern in _LEAKS.items()}


def test_the_example_is_the_real_entry():
    assert filled(VOCABULARY) == VOCABULARY

"""The prose is one document that is complete, current and of readable length, and its examples are real."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from prose.examples import EXAMPLES, FOLDER, make_examples

from continuity_conformance.http.messages import Answer, decoded
from continuity_spec import load_spec
from continuity_spec.openapi.answers import AnswerValidator
from continuity_spec.openapi.document import DOCUMENTED_HEADER, load_openapi
from continuity_spec.render.prose import render_prose

ROOT = Path(__file__).parents[3]
SPEC = load_spec()
PROSE = render_prose(SPEC)
TEMPLATE = (ROOT / "spec" / "continuity_spec" / "prose" / "document.md").read_text(encoding="utf-8")
KEYWORDS = re.compile(r"\b(MUST|SHOULD|MAY)\b")
WORD = re.compile(r"\S*\w\S*")
LEAST_WORDS, MOST_WORDS = 6_500, 8_200
"""10 to 15 printed pages, with the examples."""
ANSWERED = pytest.mark.parametrize(
    "example", [example for example in EXAMPLES if "answer" in example.shows], ids=lambda example: example.name
)
EVERY_EXAMPLE = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)


def test_the_committed_document_is_what_the_command_prints():
    assert (ROOT / "docs" / "reference" / "spec.md").read_text(encoding="utf-8").rstrip() == PROSE.rstrip()


def test_it_lists_every_requirement_of_a_class_once():
    listed = re.findall(r"^- \*\*([A-Z]+-\d{2})\*\*", PROSE, re.MULTILINE)
    of_classes = [identity for each in SPEC.classes for identity in each.ids]

    assert sorted(listed) == sorted(identity for identity in of_classes if SPEC.requirement(identity).area != "ERROR")


def test_the_table_of_errors_names_every_requirement_about_an_error():
    table = re.findall(r"^\| \d{3} \|.*$", PROSE, re.MULTILINE)

    assert set(re.findall(r"ERROR-\d{2}", " ".join(table))) == {
        entry.id for entry in SPEC.requirements if entry.area == "ERROR"
    }


def test_every_class_has_a_section_with_its_claim():
    sections = re.findall(r"^### 4\.\d+ (\w+)\n\n\*Claim:\* (.*)$", PROSE, re.MULTILINE)

    assert [name for name, _ in sections] == [each.name for each in SPEC.classes]
    assert [each.name for each in SPEC.classes if dict(sections)[each.name].startswith(each.claim) is False] == []


def test_all_classes_except_strict_require_core():
    assert "All of them except Strict require Core." in PROSE
    assert {each.name: each.requires for each in SPEC.classes if each.requires != ("Core",)} == {
        "Core": (),
        "Strict": (),
    }


def test_every_requirement_shows_its_keyword():
    sentences = re.findall(r"^- \*\*([A-Z]+-\d{2})\*\*(.*)$", PROSE, re.MULTILINE)

    assert [identity for identity, text in sentences if SPEC.requirement(identity).level.value not in text] == []


def test_the_text_names_only_requirements_that_exist():
    known = {entry.id for entry in SPEC.requirements}

    assert set(re.findall(r"\b[A-Z]+-\d{2}\b", TEMPLATE)) - {"UTF-16"} <= known


def test_a_must_in_the_text_rests_on_a_must():
    cited = re.findall(r"([^\]]*)\[([A-Z]+-\d{2}(?:, [A-Z]+-\d{2})*)\]", TEMPLATE)
    claims = [(text.split(". ")[-1], ids.split(", ")) for text, ids in cited]
    musts = [(text, ids) for text, ids in claims if "MUST" in text and "SHOULD" not in text]

    assert [ids for _, ids in musts if not any(SPEC.requirement(each).level.binding for each in ids)] == []


def test_every_option_value_and_offer_has_a_meaning():
    schemas = load_openapi()["components"]["schemas"]
    options = [value for schema in schemas["Options"]["properties"].values() for value in schema["enum"]]
    offers = schemas["Continuity"]["properties"]["offers"]["items"]["enum"]

    assert [value for value in options if re.search(rf"\*\*{value}\*\*: \S", PROSE) is None] == []
    assert [offer for offer in offers if f"**{offer}**" not in PROSE] == []


def test_it_has_10_to_16_pages():
    assert LEAST_WORDS <= len(WORD.findall(PROSE)) <= MOST_WORDS


def test_every_paragraph_of_the_protocol_has_a_keyword():
    protocol = TEMPLATE.partition("## 4.")[2].partition("## 5.")[0]
    paragraphs = [text for text in protocol.split("\n\n") if len(text.split()) > 40]

    assert [text[:80] for text in paragraphs if not KEYWORDS.search(text)] == []


def test_every_condition_of_a_requirement_is_an_offer_or_has_words():
    offers = load_openapi()["components"]["schemas"]["Continuity"]["properties"]["offers"]["items"]["enum"]
    conditions = re.findall(r"\*\((?:[^*]*, )?offers ([^*]*)\)\*", PROSE)

    assert {need for text in conditions for need in text.split(", ")} <= {*offers}


def test_the_examples_are_what_the_reference_server_answers():
    made = asyncio.run(make_examples())

    assert made == {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.http"))}


def messages(name: str) -> list[tuple[str, dict[str, list[str]], str]]:
    """The HTTP messages of an example: first line, header fields and body."""
    texts = re.split(r"\n\n(?=HTTP/1.1 |POST )", (FOLDER / f"{name}.http").read_text(encoding="utf-8").strip())
    return [_parsed(text) for text in texts]


def _parsed(text: str) -> tuple[str, dict[str, list[str]], str]:
    head, _, body = text.partition("\n\n")
    first, *fields = head.splitlines()
    return first, {name.lower(): [value] for name, value in (field.split(": ", 1) for field in fields)}, body


@EVERY_EXAMPLE
def test_the_request_of_an_example_is_valid(example):
    first, _, body = messages(example.name)[0]
    method, path, _ = first.split()
    operation = load_openapi()["paths"][path][method.lower()]
    if body:
        schema = {
            **operation["requestBody"]["content"]["application/json"]["schema"],
            "components": load_openapi()["components"],
        }
        Draft202012Validator(schema).validate(json.loads(body))


@ANSWERED
def test_the_answer_of_an_example_is_valid(example):
    request, answer = messages(example.name)[:2]
    method, path, _ = request[0].split()
    status = int(answer[0].split()[1])
    content_type = answer[1]["content-type"][0]
    head = Answer(status=status, headers=(("Content-Type", content_type),))
    read = decoded(head, f"{answer[2]}\n\n".encode())
    validator = AnswerValidator(DOCUMENTED_HEADER)

    assert validator.problems(method, path, status, content_type, answer[1], read.body, read.events) == []

"""The spec as one document to read: definitions, protocol, options, errors, classes, requirements and algorithms.

The text is a template, `prose/document.md`. A placeholder such as `{{errors}}` is filled from the requirements, the classes, the OpenAPI document, the vectors,
`prose/words.yaml` (what names mean) or `prose/examples/` (requests and answers on the wire). Nothing here knows how a requirement is worded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from typing import Any

import yaml

from continuity_spec.model import ConformanceClass, Requirement, Spec
from continuity_spec.openapi.document import load_openapi

_PLACEHOLDER = re.compile(r"\{\{([a-z-]+)(?: ([a-z-]+))?\}\}")
_METHODS = ("get", "post", "delete")
_CONTROLS = "/conformance/"
_OBVIOUS = frozenset({"tells"})
"""Conditions that the document states once for all requirements."""
_OF_THE_FILES = frozenset({"Format", "On a server that has lived"})
"""Parts of the vectors' page that are not about the algorithms."""
_WITHOUT = {"derivation": "none", "environment": "none"}
"""Options with a value that means "does not do it": a condition that allows all other values names only the option."""
Words = Mapping[str, Mapping[str, Any]]


def render_prose(spec: Spec) -> str:
    """Return the whole document, in Markdown."""
    words: Words = yaml.safe_load(_bundled("prose/words.yaml"))
    release = max(spec.releases, key=_version)
    fillings: Mapping[str, Callable[[], str]] = {
        "release": lambda: release,
        "count": lambda: str(sum(len(each.ids) for each in spec.classes)),
        "definitions": lambda: "\n".join(f"- **{word}**: {text}" for word, text in words["definitions"].items()),
        "endpoints": lambda: "\n".join(_endpoints()),
        "options": lambda: "\n".join(_options(words["options"])),
        "offers": lambda: "; ".join(_offers(words["offers"])),
        "errors": lambda: "\n".join(_errors()),
        "classes": lambda: "\n".join(_classes(spec)),
        "requirements": lambda: "\n\n".join(_requirements(spec, words["areas"])),
        "derivation": lambda: _vectors_section("Derivation"),
        "tip-resolution": lambda: _vectors_section("Tip resolution"),
    }

    def fill(found: re.Match[str]) -> str:
        return _example(found[2]) if found[1] == "example" else fillings[found[1]]()

    return re.sub(r"\n{3,}", "\n\n", _PLACEHOLDER.sub(fill, _bundled("prose/document.md")))


def _bundled(name: str) -> str:
    return resources.files("continuity_spec").joinpath(name).read_text(encoding="utf-8")


def _version(release: str) -> tuple[int, ...]:
    return tuple(int(number) for number in release.split("."))


def _example(name: str) -> str:
    return f"```http\n{_bundled(f'prose/examples/{name}.http').strip()}\n```"


# Of the OpenAPI document


def _operations() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield method, path and operation of everything but the control API."""
    for path, item in load_openapi()["paths"].items():
        if not path.startswith(_CONTROLS):
            yield from ((method, path, item[method]) for method in _METHODS if method in item)


def _endpoints() -> Iterator[str]:
    yield "| request | meaning | only if offered |"
    yield "|---|---|---|"
    for method, path, operation in _operations():
        yield f"| `{method.upper()} {path}` | {operation['summary']} | {operation.get('x-continuity-offer', '')} |"


def _options(meanings: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    yield "| option | about | values, and what each means for a client |"
    yield "|---|---|---|"
    for option, schema in load_openapi()["components"]["schemas"]["Options"]["properties"].items():
        known = meanings.get(option, {})
        values = "; ".join(f"**{value}**: {known.get(value, '')}" for value in schema["enum"])
        yield f"| `{option}` | {known.get('about', '')} | {values} |"


def _offers(meanings: Mapping[str, str]) -> Iterator[str]:
    for offer in load_openapi()["components"]["schemas"]["Continuity"]["properties"]["offers"]["items"]["enum"]:
        yield f"**{offer}** ({meanings.get(offer, '')})"


def _errors() -> Iterator[str]:
    """The table of errors: every code that an example of an error in the document has."""
    yield "| status | code | type | when |"
    yield "|---|---|---|---|"
    rows: dict[str, str] = {}
    for _, _, operation in _operations():
        for status, answer in operation["responses"].items():
            for code, kind, when in _examples_of_errors(_resolved(answer)):
                rows.setdefault(f"{status} {code}", f"| {status} | `{code}` | `{kind}` | {when} |")
    yield from (rows[key] for key in sorted(rows))


def _examples_of_errors(answer: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    content = answer.get("content", {}).get("application/json", {})
    for example in content.get("examples", {}).values():
        error = _resolved(example)["value"].get("error")
        if error:
            yield (
                error["code"] or "null",
                error["type"],
                example.get("summary") or error["message"].removesuffix("."),
            )


def _resolved(node: Mapping[str, Any]) -> Mapping[str, Any]:
    target: Any = load_openapi()
    for key in node["$ref"].removeprefix("#/").split("/") if "$ref" in node else ():
        target = target[key]
    return target if "$ref" in node else node


# Of the requirements


def _classes(spec: Spec) -> Iterator[str]:
    yield "| class | claim | requires | requirements |"
    yield "|---|---|---|---|"
    for each in spec.classes:
        yield f"| {each.name} | {each.claim} | {', '.join(each.requires) or 'nothing'} | {len(each.ids)} |"


def _requirements(spec: Spec, areas: Mapping[str, str]) -> Iterator[str]:
    for each in spec.classes:
        aside = "" if each.decides else "\n\nIt is reported, and decides only where it is claimed."
        yield f"### {each.name}{aside}"
        yield from (_area(area, entries, areas) for area, entries in _by_area(spec, each).items())


def _by_area(spec: Spec, conformance_class: ConformanceClass) -> Mapping[str, list[Requirement]]:
    """The requirements of a class by area, both in the order of the class."""
    by_area: dict[str, list[Requirement]] = {}
    for identity in conformance_class.ids:
        entry = spec.requirement(identity)
        by_area.setdefault(entry.id.partition("-")[0], []).append(entry)
    return by_area


def _area(area: str, entries: list[Requirement], areas: Mapping[str, str]) -> str:
    title = areas.get(area, area.lower())
    return "\n".join([f"{title[0].upper()}{title[1:]}:\n", *(f"- {_sentence(entry)}" for entry in entries)])


def _sentence(entry: Requirement) -> str:
    level = "" if entry.level.value in entry.text else f" ({entry.level.value})"
    conditions = [_condition(option, entry.when[option]) for option in sorted(entry.when.keys() - _OBVIOUS)]
    conditions += [f"offers {', '.join(sorted(entry.needs))}"] if entry.needs else []
    condition = f" *({', '.join(conditions)})*" if conditions else ""
    return f"**{entry.id}**{level} {' '.join(entry.text.split())}{condition}"


def _condition(option: str, values: tuple[str, ...]) -> str:
    unless = _WITHOUT.get(option)
    return (
        f"{option} is not {unless}"
        if unless and len(values) > 1 and unless not in values
        else f"{option}={'/'.join(values)}"
    )


# Of the vectors


def _vectors_section(title: str) -> str:
    """Return a section of the vectors' page without the part about the format of the files, as a part of this document."""
    sections = dict(_split(_bundled("vectors/README.md"), "# "))
    parts = [text for heading, text in _split(sections[title], "## ") if heading and heading not in _OF_THE_FILES]
    return "\n\n".join(part.strip() for part in parts)


def _split(text: str, marker: str) -> Iterator[tuple[str, str]]:
    """Yield each heading of this level with the text below it; what comes before the first has no heading."""
    before, *rest = re.split(rf"^{marker}", text, flags=re.MULTILINE)
    yield "", before
    for section in rest:
        heading, _, body = section.partition("\n")
        yield heading.strip(), body

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

_PLACEHOLDER = re.compile(r"\{\{([a-z-]+)(?: ([A-Za-z-]+))?\}\}")
_METHODS = ("get", "post", "delete")
_CONTROLS = "/conformance/"
_ERRORS = "ERROR-"
_USUAL = ("Core",)
"""What the document says once that a class requires."""
_OBVIOUS = frozenset({"tells"})
"""Conditions that the document states once for all requirements."""
_ALGORITHM = "Algorithm"
"""The part of each section of the vectors' page that this document repeats."""
_WITHOUT = {"derivation": "none", "environment": "none"}
"""Options with a value that means "does not do it": a condition that allows all other values names only the option."""
Words = Mapping[str, Mapping[str, Any]]


def render_prose(spec: Spec) -> str:
    """Return the whole document, in Markdown."""
    words: Words = yaml.safe_load(_bundled("prose/words.yaml"))
    release = max(spec.releases, key=_version)
    classes = {each.name: each for each in spec.classes}
    fillings: Mapping[str, Callable[[str], str]] = {
        "release": lambda _: release,
        "count": lambda _: str(sum(len(each.ids) for each in spec.classes)),
        "definitions": lambda _: "\n".join(f"- **{word}**: {text}" for word, text in words["definitions"].items()),
        "endpoints": lambda _: "\n".join(_endpoints()),
        "options": lambda _: "\n".join(_options(words["options"])),
        "offers": lambda _: ", ".join(_offers(words["offers"])),
        "errors": lambda _: "\n".join(_errors(spec)),
        "claim": lambda name: _claim(classes[name]),
        "requirements": lambda name: "\n".join(_requirements(spec, classes[name], words["needs"])),
        "example": _example,
        "derivation": lambda _: _vectors_section("Derivation"),
        "tip-resolution": lambda _: _vectors_section("Tip resolution"),
    }

    def fill(found: re.Match[str]) -> str:
        return fillings[found[1]](found[2])

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
    """The table of endpoints: a row for each path, whose methods all belong to one offer."""
    yield "| path | methods | only if offered |"
    yield "|---|---|---|"
    rows: dict[tuple[str, str], list[str]] = {}
    for method, path, operation in _operations():
        rows.setdefault((path, operation.get("x-continuity-offer", "")), []).append(method.upper())
    yield from (f"| `{path}` | {', '.join(methods)} | {offer} |" for (path, offer), methods in rows.items())


def _options(meanings: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    yield "| option | about | values |"
    yield "|---|---|---|"
    for option, schema in load_openapi()["components"]["schemas"]["Options"]["properties"].items():
        known = meanings.get(option, {})
        values = "; ".join(f"**{value}**: {known.get(value, '')}" for value in schema["enum"])
        yield f"| `{option}` | {known.get('about', '')} | {values} |"


def _offers(meanings: Mapping[str, str]) -> Iterator[str]:
    for offer in load_openapi()["components"]["schemas"]["Continuity"]["properties"]["offers"]["items"]["enum"]:
        meaning = meanings.get(offer)
        yield f"**{offer}** ({meaning})" if meaning else f"**{offer}**"


def _errors(spec: Spec) -> Iterator[str]:
    """The table of errors: every code that an example of an error in the document has, by status and type."""
    yield "| status | type | code |"
    yield "|---|---|---|"
    rows: dict[tuple[str, str], list[str]] = {}
    for _, _, operation in _operations():
        for status, answer in operation["responses"].items():
            for code, kind, when in _examples_of_errors(_resolved(answer)):
                codes = rows.setdefault((status, kind), [])
                text = f"`{code}`{_details(spec, code, when)}"
                codes.extend([text] if text not in codes else ())
    yield from (f"| {status} | `{kind}` | {', '.join(codes)} |" for (status, kind), codes in sorted(rows.items()))


def _details(spec: Spec, code: str, when: str) -> str:
    """When the error is due, if its code does not say it, and the requirements that name it."""
    parts = [f"{when[:1].lower()}{when[1:]}", *(entry.id for entry in _about_errors(spec) if f"`{code}`" in entry.text)]
    text = "; ".join(part for part in parts if part)
    return f" ({text})" if text else ""


def _about_errors(spec: Spec) -> Iterator[Requirement]:
    """The requirements about one error each: the table shows them, and the list of their class does not."""
    return (entry for entry in spec.requirements if entry.id.startswith(_ERRORS))


def _examples_of_errors(answer: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    content = answer.get("content", {}).get("application/json", {})
    for example in content.get("examples", {}).values():
        error = _resolved(example)["value"].get("error")
        if error:
            yield error["code"] or "null", error["type"], example.get("summary", "")


def _resolved(node: Mapping[str, Any]) -> Mapping[str, Any]:
    target: Any = load_openapi()
    for key in node["$ref"].removeprefix("#/").split("/") if "$ref" in node else ():
        target = target[key]
    return target if "$ref" in node else node


# Of the requirements


def _claim(each: ConformanceClass) -> str:
    requires = "" if each.requires in {(), _USUAL} else f" It requires {', '.join(each.requires)}."
    aside = "" if each.decides else " The class is reported, and decides only where it is claimed."
    return f"*Claim:* {each.claim}{requires}{aside}"


def _requirements(spec: Spec, each: ConformanceClass, named: Mapping[str, str]) -> Iterator[str]:
    """The requirements of a class, in its order. `named`: conditions that are no offers, and how to say them."""
    listed = (spec.requirement(identity) for identity in each.ids if not identity.startswith(_ERRORS))
    return (f"- {_sentence(entry, named)}" for entry in listed)


def _sentence(entry: Requirement, named: Mapping[str, str]) -> str:
    level = "" if entry.level.value in entry.text else f" ({entry.level.value})"
    conditions = [_condition(option, entry.when[option]) for option in sorted(entry.when.keys() - _OBVIOUS)]
    conditions += [named[need] for need in sorted(entry.needs) if need in named]
    offers = ", ".join(need for need in sorted(entry.needs) if need not in named)
    conditions += [f"offers {offers}"] if offers else []
    condition = f" *({', '.join(conditions)})*" if conditions else ""
    return f"**{entry.id}**{level} {' '.join(entry.text.split())}{condition}"


def _condition(option: str, values: tuple[str, ...]) -> str:
    unless = _WITHOUT.get(option)
    return (
        f"{option}≠{unless}" if unless and len(values) > 1 and unless not in values else f"{option}={'/'.join(values)}"
    )


# Of the vectors


def _vectors_section(title: str) -> str:
    """Return the algorithm from a section of the vectors' page."""
    sections = dict(_split(_bundled("vectors/README.md"), "# "))
    return dict(_split(sections[title], "## "))[_ALGORITHM].strip()


def _split(text: str, marker: str) -> Iterator[tuple[str, str]]:
    """Yield each heading of this level with the text below it; what comes before the first has no heading."""
    before, *rest = re.split(rf"^{marker}", text, flags=re.MULTILINE)
    yield "", before
    for section in rest:
        heading, _, body = section.partition("\n")
        yield heading.strip(), body

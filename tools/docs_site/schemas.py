"""The reference of the files that people write and read: profiles, baselines and results.json, from their JSON schemas."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from continuity_spec.load.schema import schema

_PAGES = {
    "profile": (
        "reference/profile.md",
        "Profile",
        "A profile says what a URL cannot. [How to write one](../how-to/profile.md).",
    ),
    "results": (
        "reference/results-schema.md",
        "results.json",
        "The file that every report is made from. [How to read and share results](../how-to/reports.md).",
    ),
    "baseline": (
        "reference/baseline.md",
        "Baseline",
        "A file of known failures and gaps. [How to use one](../how-to/gate.md).",
    ),
}
_LONGEST = 12
"""How many values of an enumeration are shown."""


def pages() -> dict[str, str]:
    return {page: "\n".join(_page(schema(name), title, about)) for name, (page, title, about) in _PAGES.items()}


def _page(whole: Mapping[str, Any], title: str, about: str) -> Iterator[str]:
    yield from (f"# {title}", "", f"{about} Generated from the JSON schema `{whole['$id']}`.", "")
    yield from ("| field | type | meaning |", "|---|---|---|")
    yield from _rows(whole, whole, "")
    for name, part in whole.get("$defs", {}).items():
        rows = list(_rows(part, whole, ""))
        if rows:
            yield from (
                "",
                f"## {name}",
                "",
                part.get("description", ""),
                "",
                "| field | type | meaning |",
                "|---|---|---|",
                *rows,
            )
    yield from ("", "## The schema", "", "```json", json.dumps(whole, indent=2, ensure_ascii=False), "```", "")


def _rows(node: Mapping[str, Any], whole: Mapping[str, Any], prefix: str) -> Iterator[str]:
    node = node.get("items", node) if node.get("type") == "array" else node
    for name, given in node.get("properties", {}).items():
        field = given if isinstance(given, Mapping) else {}
        needed = " (required)" if name in node.get("required", ()) else ""
        yield f"| `{prefix}{name}`{needed} | {_kind(field)} | {_cell(_meaning(field, whole))} |"
        if "$ref" not in field:
            yield from _rows(field, whole, f"{prefix}{name}.")


def _meaning(field: Mapping[str, Any], whole: Mapping[str, Any]) -> str:
    reference = field.get("$ref", "").rpartition("/")[2]
    return str(field.get("description") or whole.get("$defs", {}).get(reference, {}).get("description", ""))


def _kind(field: Mapping[str, Any]) -> str:
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return str(name)
    if "enum" in field:
        values = [f"`{json.dumps(each)}`" for each in field["enum"][:_LONGEST]]
        return " or ".join(values)
    if "const" in field:
        return f"`{field['const']}`"
    kind = field.get("type", "")
    if kind == "array":
        return f"list of {_kind(field.get('items', {})) or 'anything'}"
    return _cell(" or ".join(kind) if isinstance(kind, list) else kind) or " or ".join(
        filter(None, (_kind(each) for word in ("oneOf", "anyOf") for each in field.get(word, ())))
    )


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "¦")

"""The reference of the HTTP API, from the OpenAPI documents of the spec: the contract, and the control API."""

from collections.abc import Iterator, Mapping
from typing import Any

from continuity_spec.openapi.document import document_text, load_control, load_openapi

_METHODS = ("get", "post", "put", "delete")
_PAGES = {
    "reference/http-api.md": (
        "HTTP API",
        "openapi.yaml",
        load_openapi,
        "What a server offers to its clients. `continuity spec openapi` prints the document.",
    ),
    "reference/control-api.md": (
        "Control API",
        "control.yaml",
        load_control,
        "Requests by which the kit makes things happen to a server under test. It is optional, off by default, on loopback only and has its own token. `continuity spec openapi --control` prints the document.",
    ),
}


def pages() -> dict[str, str]:
    return {page: "\n".join(_page(title, file, load(), about)) for page, (title, file, load, about) in _PAGES.items()}


def _page(title: str, file: str, document: Mapping[str, Any], about: str) -> Iterator[str]:
    yield from (f"# {title}", "", about, "")
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                yield from _operation(method, path, item, document)
    yield from ("## Schemas", "")
    for name, part in document["components"]["schemas"].items():
        yield from _schema(name, part)
    yield from ("## The document", "", "```yaml", document_text(file).rstrip(), "```", "")


def _operation(method: str, path: str, item: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[str]:
    operation = item[method]
    yield from (
        f"## {method.upper()} {path}",
        "",
        operation.get("summary", ""),
        "",
        operation.get("description", ""),
        "",
    )
    offer = operation.get("x-continuity-offer")
    if offer:
        yield from (f"Only if the server offers *{offer}*.", "")
    parameters = [_resolved(each, document) for each in (*item.get("parameters", ()), *operation.get("parameters", ()))]
    if parameters:
        yield from ("| parameter | in | meaning |", "|---|---|---|")
        yield from (
            f"| `{each['name']}` | {each['in']} | {_cell(each.get('description', ''))} |" for each in parameters
        )
        yield ""
    body = _resolved(operation.get("requestBody", {}), document).get("content", {})
    for kind, content in body.items():
        yield from (f"Body, `{kind}`: {_named(content.get('schema', {}))}", "")
    yield from ("| status | meaning | body |", "|---|---|---|")
    for status, answer in operation["responses"].items():
        found = _resolved(answer, document)
        bodies = ", ".join(
            f"`{kind}` {_named(content.get('schema', {}))}" for kind, content in found.get("content", {}).items()
        )
        yield f"| {status} | {_cell(found.get('description', ''))} | {bodies} |"
    yield ""


def _schema(name: str, part: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"### {name}", "", part.get("description", ""), "")
    fields = part.get("properties", {})
    if fields:
        yield from ("| field | type | meaning |", "|---|---|---|")
        for field, inner in fields.items():
            shown = inner if isinstance(inner, Mapping) else {}
            needed = " (required)" if field in part.get("required", ()) else ""
            yield f"| `{field}`{needed} | {_kind(shown)} | {_cell(shown.get('description', ''))} |"
        yield ""


def _kind(field: Mapping[str, Any]) -> str:
    if "$ref" in field:
        return _named(field)
    if "enum" in field:
        return " or ".join(f"`{each}`" for each in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if field.get("type") == "array":
        return f"list of {_kind(field.get('items', {})) or 'anything'}"
    choices = [_kind(each) for word in ("oneOf", "anyOf") for each in field.get(word, ())]
    kind = field.get("type", "")
    return " or ".join(dict.fromkeys(filter(None, choices))) or (
        " or ".join(kind) if isinstance(kind, list) else str(kind)
    )


def _named(node: Mapping[str, Any]) -> str:
    name = node.get("$ref", "").rpartition("/")[2]
    return f"[{name}](#{name.lower()})" if name else ""


def _resolved(node: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Any = document
    for key in node["$ref"].removeprefix("#/").split("/") if "$ref" in node else ():
        found = found[key.replace("~1", "/").replace("~0", "~")]
    return found if "$ref" in node else node


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "¦")

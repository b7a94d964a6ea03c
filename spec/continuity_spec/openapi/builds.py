"""Other forms of the OpenAPI document, all made from openapi.yaml: with another header name, in OpenAPI 3.2, and as an Overlay.

Pure functions of documents. They read no answers and open no connection.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

from continuity_spec.openapi.document import DOCUMENTED_HEADER, EVENT_STREAM, Document, document_text

VERSIONS: Final = ("3.1", "3.2")
OVERLAY_HEADER: Final = "X-Session-Id"
"""The name of the continuity header in header.overlay.yaml."""
_OVERLAY: Final = "header.overlay.yaml"
_FIELD_NAME: Final = re.compile(r"[A-Za-z0-9-]+")


def is_field_name(text: str) -> bool:
    """Whether this can be the name of the continuity header (`Continuity.header` in the document)."""
    return _FIELD_NAME.fullmatch(text) is not None


def with_header(document: Document, header: str) -> dict[str, Any]:
    """Return the document with another name of the continuity header."""
    renamed: dict[str, Any] = json.loads(json.dumps(document).replace(DOCUMENTED_HEADER, header))
    return renamed


def overlay_text(header: str) -> str:
    """Return the Overlay that gives the continuity header this name."""
    return document_text(_OVERLAY).replace(OVERLAY_HEADER, header)


def in_version_3_2(document: Document) -> dict[str, Any]:
    """Return the document in OpenAPI 3.2, where `itemSchema` describes one event of a stream."""
    built: dict[str, Any] = _built(document)
    return {**built, "openapi": "3.2.0"}


def as_yaml(document: Document) -> str:
    """Write a document as YAML that every loader reads: all strings that could be anything else are quoted."""
    return yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def _built(node: Any) -> Any:
    if isinstance(node, list):
        return [_built(item) for item in node]
    if not isinstance(node, Mapping):
        return node
    return {key: _event_stream(value) if key == EVENT_STREAM else _built(value) for key, value in node.items()}


def _event_stream(media: Mapping[str, Any]) -> dict[str, Any]:
    """In 3.2 `schema` is the whole stream, `itemSchema` is one event, and an example holds a list of events."""
    examples = {
        name: {"summary": example["summary"], "dataValue": [example["value"]]}
        for name, example in media["examples"].items()
    }
    return {"itemSchema": media["schema"], "examples": examples}


class _Dumper(yaml.SafeDumper):
    """Writes no anchors: readers of a published document find each thing where it belongs."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the signature of PyYAML
        return True

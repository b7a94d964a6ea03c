"""The documents parse with every YAML loader; the builds and the Overlay come from one source and say the same."""

import json

import jsonpath_rfc9535 as jsonpath
import pytest
import schemathesis
import yaml
from openapi_spec_validator import OpenAPIV31SpecValidator, OpenAPIV32SpecValidator
from ruamel.yaml import YAML

from continuity_spec.openapi.builds import (
    OVERLAY_HEADER,
    as_yaml,
    in_version_3_2,
    is_field_name,
    overlay_text,
    with_header,
)
from continuity_spec.openapi.document import DOCUMENTED_HEADER, document_text, load_control, load_openapi

DOCUMENTS = ["openapi.yaml", "control.yaml", "header.overlay.yaml"]
OPENAPI, CONTROL = load_openapi(), load_control()


def strict(text):
    """As a loader of YAML 1.2 reads it, which also refuses keys that come twice."""
    loader = YAML(typ="safe", pure=True)
    loader.version = (1, 2)
    return loader.load(text)


def merged(old, new):
    """RFC 7396, as far as an Overlay needs it."""
    return {
        **old,
        **{key: merged(old.get(key, {}), value) if isinstance(value, dict) else value for key, value in new.items()},
    }


def applied(overlay, document):
    """The document after the actions of an Overlay 1.0, in order."""
    result = json.loads(json.dumps(document))
    for action in overlay["actions"]:
        nodes = jsonpath.find(action["target"], result)
        assert nodes, f"{action['target']} selects nothing"
        for node in nodes:
            parent = result
            for key in node.location[:-1]:
                parent = parent[key]
            if action.get("remove"):
                del parent[node.location[-1]]
            else:
                parent[node.location[-1]] = merged(node.value, action["update"])
    return result


class TestLoaders:
    @pytest.mark.parametrize("name", DOCUMENTS)
    def test_every_yaml_loader_reads_the_same(self, name):
        text = document_text(name)

        assert yaml.load(text, Loader=yaml.SafeLoader) == yaml.load(text, Loader=yaml.CSafeLoader) == strict(text)

    @pytest.mark.parametrize("document", [OPENAPI, CONTROL], ids=["openapi", "control"])
    def test_a_build_is_read_back_as_it_was(self, document):
        assert strict(as_yaml(document)) == yaml.safe_load(as_yaml(document)) == document


class TestControl:
    def test_it_is_valid(self):
        assert [error.message for error in OpenAPIV31SpecValidator(CONTROL).iter_errors()] == []

    def test_all_controls_are_there_and_only_there(self):
        controls = {path.removeprefix("/conformance/v1/") for path in CONTROL["paths"]}

        assert controls == {"evict", "compress", "fault", "fork", "link", "lineage"}
        assert not any("conformance" in path for path in OPENAPI["paths"])

    def test_a_control_needs_a_token_beside_the_key(self):
        assert all("conformance" in alternative for alternative in CONTROL["security"])

    def test_what_both_documents_have_is_the_same(self):
        shared = [
            (kind, name)
            for kind, members in CONTROL["components"].items()
            for name in members.keys() & OPENAPI["components"].get(kind, {}).keys()
        ]

        assert ("schemas", "Error") in shared
        assert all(CONTROL["components"][kind][name] == OPENAPI["components"][kind][name] for kind, name in shared)


class TestVersion32:
    BUILD = in_version_3_2(OPENAPI)

    def test_it_is_valid(self):
        assert [error.message for error in OpenAPIV32SpecValidator(self.BUILD).iter_errors()] == []

    def test_schemathesis_loads_it(self):
        schema = schemathesis.openapi.from_dict(self.BUILD)

        assert sum(1 for _ in schema.get_all_operations()) > 10

    @pytest.mark.parametrize(
        ("path", "event"), [("/v1/chat/completions", "ChatEvent"), ("/v1/responses", "ResponseEvent")]
    )
    def test_a_stream_has_a_schema_for_each_event(self, path, event):
        stream = self.BUILD["paths"][path]["post"]["responses"]["200"]["content"]["text/event-stream"]

        assert stream["itemSchema"] == {"$ref": f"#/components/schemas/{event}"}
        assert "schema" not in stream
        assert all(isinstance(example["dataValue"], list) for example in stream["examples"].values())

    def test_nothing_else_differs(self):
        back = json.loads(json.dumps(self.BUILD))
        for path in ("/v1/chat/completions", "/v1/responses"):
            content = back["paths"][path]["post"]["responses"]["200"]["content"]
            content["text/event-stream"] = OPENAPI["paths"][path]["post"]["responses"]["200"]["content"][
                "text/event-stream"
            ]

        assert {**back, "openapi": OPENAPI["openapi"]} == OPENAPI


class TestHeader:
    @pytest.mark.parametrize("name", [OVERLAY_HEADER, "X-My-Session"])
    def test_the_overlay_renames_the_header_everywhere(self, name):
        overlay = yaml.safe_load(overlay_text(name))

        assert applied(overlay, OPENAPI) == with_header(OPENAPI, name)

    def test_no_other_name_is_left(self):
        assert DOCUMENTED_HEADER not in as_yaml(with_header(OPENAPI, "X-My-Session"))

    @pytest.mark.parametrize(("text", "expected"), [("X-My-Id", True), ("a b", False), ("", False), ("a:b", False)])
    def test_a_name_of_letters_digits_and_hyphens(self, text, expected):
        assert is_field_name(text) == expected

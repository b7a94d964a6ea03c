"""openapi.yaml is a valid OpenAPI 3.1 document, says the whole surface, and its examples are true to it."""

import json
import re
import time
from importlib import resources

import pytest
import schemathesis
import yaml
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from continuity_spec.openapi.document import load_openapi

DOCUMENT = load_openapi()
URI = "urn:the-document"
REGISTRY = Registry().with_resource(URI, DRAFT202012.create_resource(DOCUMENT))

SURFACE = {
    "POST /v1/chat/completions",
    "POST /v1/responses",
    "GET /v1/responses/{response_id}",
    "DELETE /v1/responses/{response_id}",
    "POST /v1/conversations",
    "GET /v1/conversations/{conversation_id}",
    "DELETE /v1/conversations/{conversation_id}",
    "GET /v1/sessions",
    "GET /v1/sessions/{session_id}",
    "DELETE /v1/sessions/{session_id}",
    "GET /v1/sessions/{session_id}/messages",
    "GET /v1/models",
    "GET /v1/capabilities",
    "GET /health",
}

ERRORS = {
    (401, "authentication_error", "invalid_api_key"),
    (403, "permission_error", "session_requires_key"),
    (400, "invalid_request_error", "invalid_session_id"),
    (409, "invalid_request_error", "session_conflict"),
    (400, "invalid_request_error", "mutually_exclusive_parameters"),
    (400, "invalid_request_error", "invalid_request"),
    (400, "invalid_request_error", "invalid_json"),
    (404, "not_found_error", "previous_response_not_found"),
    (404, "not_found_error", "response_not_found"),
    (404, "not_found_error", "conversation_not_found"),
    (404, "not_found_error", "session_not_found"),
    (404, "invalid_request_error", "model_not_found"),
    (404, "not_found_error", "tool_call_not_found"),
    (405, "invalid_request_error", "method_not_allowed"),
    (409, "conflict_error", "session_busy"),
    (413, "invalid_request_error", "request_too_large"),
    (415, "invalid_request_error", "unsupported_media_type"),
    (409, "invalid_request_error", "idempotency_key_reused"),
    (422, "invalid_request_error", "invalid_request"),
    (429, "server_error", "upstream_error"),
    (500, "server_error", "internal_error"),
    (502, "server_error", "upstream_error"),
    (503, "server_error", "history_unavailable"),
    (504, "server_error", "upstream_error"),
}


def resolved(node):
    """The node, or what its `$ref` names."""
    target = node
    while "$ref" in target:
        pointer, target = target["$ref"].removeprefix("#/").split("/"), DOCUMENT
        for key in pointer:
            target = target[key]
    return target


def operations():
    verbs = {"get", "post", "delete"}
    return {
        f"{method.upper()} {path}": operation
        for path, item in DOCUMENT["paths"].items()
        for method, operation in item.items()
        if method in verbs
    }


def answers():
    return {
        (label, int(status)): resolved(answer)
        for label, operation in operations().items()
        for status, answer in operation["responses"].items()
    }


def walk(node, path=()):
    """Every mapping of the document, with its path."""
    pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in pairs:
        yield from walk(value, (*path, key))
    if isinstance(node, dict):
        yield path, node


def media_types():
    """Every media type of a request or an answer, by a name that a person finds in the document."""
    for label, operation in operations().items():
        for media_type, media in operation.get("requestBody", {"content": {}})["content"].items():
            yield f"{label} request {media_type}", media
    for (label, status), answer in answers().items():
        for media_type, media in answer["content"].items():
            yield f"{label} {status} {media_type}", media


def validator(schema):
    absolute = json.loads(json.dumps(schema).replace('"#/', f'"{URI}#/'))
    return Draft202012Validator(absolute, registry=REGISTRY)


def violations(schema, value):
    return [f"{error.json_path}: {error.message}" for error in validator(schema).iter_errors(value)]


EXAMPLES = [
    pytest.param(media["schema"], resolved(example)["value"], id=f"{where}: {name}")
    for where, media in media_types()
    for name, example in media["examples"].items()
]
EVERY_OPERATION = [pytest.param(operation, id=label) for label, operation in operations().items()]
CHAT = {"$ref": "#/components/schemas/ChatRequest"}
RESPONSE = {"$ref": "#/components/schemas/ResponseRequest"}
HELLO = [{"role": "user", "content": "Hello"}]
TURNS = ["POST /v1/chat/completions", "POST /v1/responses"]


class TestDocument:
    def test_the_validator_finds_nothing(self):
        assert [error.message for error in OpenAPIV31SpecValidator(DOCUMENT).iter_errors()] == []

    def test_schemathesis_loads_every_operation(self):
        schema = schemathesis.openapi.from_dict(DOCUMENT)

        assert {operation.ok().label for operation in schema.get_all_operations()} == SURFACE

    def test_the_surface_is_complete(self):
        assert set(operations()) == SURFACE

    def test_it_loads_in_well_under_a_tenth_of_a_second(self):
        text = resources.files("continuity_spec").joinpath("openapi.yaml").read_text(encoding="utf-8")
        seconds = []
        for _ in range(5):
            started = time.process_time()
            yaml.load(text, Loader=yaml.CSafeLoader)
            seconds.append(time.process_time() - started)

        assert min(seconds) < 0.08

    def test_no_key_was_read_as_another_type_or_cut_at_a_comma(self):
        """`on` reads as true in YAML, and `{description: one, two}` as two keys."""
        odd = [
            (path, key)
            for path, node in walk(DOCUMENT)
            for key in node
            if not isinstance(key, str) or key.endswith(".")
        ]

        assert odd == []

    def test_every_component_is_used(self):
        used = set(re.findall(r"#/components/(\w+/\w+)", json.dumps(DOCUMENT)))
        kinds = {key: value for key, value in DOCUMENT["components"].items() if key != "securitySchemes"}

        assert {f"{kind}/{name}" for kind, members in kinds.items() for name in members} == used

    def test_a_session_id_has_one_form_in_requests_and_in_answers(self):
        header = {"$ref": "#/components/schemas/SessionId"}
        components = DOCUMENT["components"]

        assert components["headers"]["Session"]["schema"] == components["headers"]["SessionOfError"]["schema"] == header
        assert components["parameters"]["Session"]["schema"]["anyOf"] == [header, {"const": ""}]
        assert components["parameters"]["SessionId"]["schema"] == header

    @pytest.mark.parametrize(
        ("text", "valid"),
        [
            ("a", True),
            ("!~", True),
            ("a" * 256, True),
            ("", False),
            ("a" * 257, False),
            ("a b", False),
            ("\u00e9", False),
        ],
    )
    def test_a_session_id_is_1_to_256_visible_ascii_characters(self, text, valid):
        assert (violations({"$ref": "#/components/schemas/SessionId"}, text) == []) == valid

    def test_a_response_id_may_be_longer(self):
        assert violations({"$ref": "#/components/schemas/ResponseId"}, "r" * 1000) == []


# Under these words stand conditions, and no values.
CONDITIONS = {"if", "then", "else", "not", "contains", "allOf"}


def objects():
    """Every schema of an object that is sent or answered, with its path."""
    for path, node in walk(DOCUMENT["components"]["schemas"], ()):
        kinds = node.get("type", "")
        is_object = kinds == "object" or (isinstance(kinds, list) and "object" in kinds)
        if is_object and "properties" in node and not CONDITIONS & set(path):
            yield "/".join(map(str, path)), node


class TestHoles:
    def test_an_object_is_closed_or_says_why_not(self):
        holes = [
            where
            for where, node in objects()
            if node.get("additionalProperties") is not False and "x-continuity-open" not in node
        ]

        assert holes == []

    def test_open_are_objects_of_openai_and_what_servers_say_of_themselves(self):
        reasons = {node["x-continuity-open"] for _, node in objects() if "x-continuity-open" in node}
        own = {where for where, node in objects() if node.get("x-continuity-open") == "servers say more"}

        assert reasons == {"OpenAI", "servers say more"}
        assert own == {"TurnSession", "Session", "Capabilities", "Continuity", "Health"}

    def test_no_value_is_left_without_a_type(self):
        words = {"type", "$ref", "enum", "const", "anyOf", "allOf", "if"}
        untyped = [
            f"{where}/{name}"
            for where, node in objects()
            for name, value in node["properties"].items()
            if not words & set(value)
        ]

        assert untyped == []

    def test_an_error_may_have_more_fields(self):
        error = {"error": {"message": "No.", "type": "server_error", "param": None, "code": None}}
        schema = {"$ref": "#/components/schemas/Error"}

        assert violations(schema, error) == []
        assert violations(schema, {"error": {**error["error"], "event_id": "e1"}, "request_id": "r1"}) == []
        assert violations(schema, {"error": {"message": "No."}}) != []


class TestOperations:
    @pytest.mark.parametrize("operation", EVERY_OPERATION)
    def test_it_is_described(self, operation):
        assert operation["operationId"]
        assert operation["summary"].endswith(".")
        assert operation["description"].endswith(".")
        assert len(operation["tags"]) == 1

    @pytest.mark.parametrize("operation", EVERY_OPERATION)
    def test_it_has_errors(self, operation):
        assert any(status >= "400" for status in operation["responses"])

    def test_operation_ids_are_unique(self):
        ids = [operation["operationId"] for operation in operations().values()]

        assert len(set(ids)) == len(ids)

    def test_a_wrong_key_is_documented_everywhere_but_for_health(self):
        without = {label for label, operation in operations().items() if "401" not in operation["responses"]}

        assert without == {"GET /health"}
        assert operations()["GET /health"]["security"] == []

    def test_a_server_for_a_single_user_needs_no_key(self):
        assert DOCUMENT["security"] == [{}, {"bearer": []}]

    @pytest.mark.parametrize("operation", EVERY_OPERATION)
    def test_other_methods_and_defects_are_documented(self, operation):
        assert {"405", "500"} < set(operation["responses"])

    @pytest.mark.parametrize("label", TURNS)
    def test_a_turn_may_find_no_such_model_and_wait_too_long_for_one(self, label):
        assert {"404", "422", "504"} < set(operations()[label]["responses"])

    @pytest.mark.parametrize("operation", EVERY_OPERATION)
    def test_its_links_lead_to_operations_and_to_their_parameters(self, operation):
        known = {it["operationId"]: (label, it) for label, it in operations().items()}
        links = [
            link for answer in operation["responses"].values() for link in resolved(answer).get("links", {}).values()
        ]
        for link in links:
            label, target = known[link["operationId"]]
            headers = [f"header.{resolved(parameter)['name']}" for parameter in target.get("parameters", [])]

            assert set(link.get("parameters", {})) <= {*headers, *re.findall(r"\{(\w+)\}", label)}

    def test_a_response_is_linked_to_what_can_be_done_with_it(self):
        links = answers()["POST /v1/responses", 200]["links"]

        assert {link["operationId"] for link in links.values()} >= {
            "getResponse",
            "deleteResponse",
            "createResponse",
            "getSession",
        }

    def test_a_chat_turn_is_linked_to_its_session(self):
        links = answers()["POST /v1/chat/completions", 200]["links"]

        assert {link["operationId"] for link in links.values()} >= {
            "createChatCompletion",
            "getSession",
            "deleteSession",
        }


class TestAnswers:
    @pytest.mark.parametrize("label", TURNS)
    def test_a_turn_tells_its_session(self, label):
        headers = answers()[label, 200]["headers"]

        assert resolved(headers["X-Hermes-Session-Id"])["required"] is True
        assert {"X-Session-Degraded", "Cache-Control"} < set(headers)

    def test_busy_says_when_to_come_again(self):
        busy = [answer for (_, status), answer in answers().items() if status == 409]

        assert busy
        assert all("Retry-After" in answer["headers"] for answer in busy)

    def test_every_error_has_the_envelope(self):
        errors = [answer for (_, status), answer in answers().items() if status >= 400]

        assert all(
            answer["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Error"}
            for answer in errors
        )

    def test_the_errors_are_those_of_the_table(self):
        found = {
            (status, example["value"]["error"]["type"], example["value"]["error"]["code"])
            for (_, status), answer in answers().items()
            for example in answer["content"]["application/json"]["examples"].values()
            if status >= 400
        }

        assert found == ERRORS

    @pytest.mark.parametrize("label", TURNS)
    def test_a_turn_can_be_streamed(self, label):
        assert set(answers()[label, 200]["content"]) == {"application/json", "text/event-stream"}

    def test_every_schema_is_a_json_schema(self):
        for schema in DOCUMENT["components"]["schemas"].values():
            Draft202012Validator.check_schema(schema)


class TestExamples:
    def test_every_media_type_has_one(self):
        assert [where for where, media in media_types() if not media.get("examples")] == []

    @pytest.mark.parametrize(("schema", "value"), EXAMPLES)
    def test_it_validates_against_its_schema(self, schema, value):
        assert violations(schema, value) == []

    @pytest.mark.parametrize(
        ("label", "schema"),
        [("POST /v1/chat/completions", "ChatEventData"), ("POST /v1/responses", "ResponseEventData")],
    )
    def test_the_data_of_an_event_validates_too(self, label, schema):
        events = answers()[label, 200]["content"]["text/event-stream"]["examples"].values()
        data = [event["value"]["data"] for event in events if event["value"]["data"] != "[DONE]"]

        assert [violations({"$ref": f"#/components/schemas/{schema}"}, json.loads(text)) for text in data] == [
            []
        ] * len(data)

    @pytest.mark.parametrize("kind", ["parameters", "headers"])
    def test_those_of_parameters_and_headers_validate(self, kind):
        members = DOCUMENT["components"][kind]

        assert {name: violations(it["schema"], it["example"]) for name, it in members.items()} == {
            name: [] for name in members
        }


class TestRequests:
    """What a request may be, told by requests."""

    @pytest.mark.parametrize(
        "more",
        [
            {},
            {"temperature": 0.2, "top_p": 1},
            {"user": "alice"},
            {"metadata": {"a": "b"}},
            {"stream": None},
            {"n": 1, "seed": 7},
        ],
    )
    def test_other_fields_of_openai_are_accepted_in_chat(self, more):
        assert violations(CHAT, {"model": "any", "messages": HELLO, **more}) == []

    @pytest.mark.parametrize(("schema", "body"), [(CHAT, {"messages": HELLO}), (RESPONSE, {"input": "Hello"})])
    def test_a_turn_names_its_model(self, schema, body):
        assert violations(schema, {**body, "model": "any"}) == []
        assert violations(schema, body) != []
        assert violations(schema, {**body, "model": None}) != []

    def test_a_body_of_tool_results_alone_continues_a_session(self):
        result = {"role": "tool", "tool_call_id": "call_1", "content": "12:00"}

        assert violations(CHAT, {"model": "any", "messages": [result]}) == []

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"messages": []},
            {"messages": "Hello"},
            {"messages": [{"role": "system", "content": "alone"}]},
            {"messages": [{"role": "pirate", "content": "Hello"}]},
            {"messages": [{"role": "user"}]},
            {"messages": HELLO, "stream": "yes"},
            {"messages": HELLO, "model": 7},
            {"messages": HELLO, "max_tokens": -1},
            {"messages": HELLO, "temperature": "hot"},
            {"messages": HELLO, "tools": [{}]},
            {"messages": HELLO, "metadata": {"a": 1}},
        ],
    )
    def test_bad_messages_and_types_are_refused_in_chat(self, body):
        assert violations(CHAT, {"model": "any", **body}) != []

    @pytest.mark.parametrize("slug", ["a", "a" * 256, {"id": "a"}, "../x'; DROP TABLE", "\U0001f600 \u00e9", None])
    def test_a_slug_is_any_text_up_to_256_characters(self, slug):
        assert violations(RESPONSE, {"model": "any", "input": "Hello", "conversation": slug}) == []

    @pytest.mark.parametrize("slug", ["", "a" * 257, 7, [], {}, {"id": 7}, {"id": "a" * 257}, True])
    def test_anything_else_is_no_slug(self, slug):
        assert violations(RESPONSE, {"model": "any", "input": "Hello", "conversation": slug}) != []

    def test_a_slug_and_a_previous_response_exclude_each_other(self):
        both = {"model": "any", "input": "Hello", "conversation": "a", "previous_response_id": "resp_1"}

        assert violations(RESPONSE, both) != []
        assert violations(RESPONSE, {**both, "conversation": None}) == []
        assert violations(RESPONSE, {**both, "previous_response_id": None}) == []

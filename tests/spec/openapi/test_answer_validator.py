"""The validator finds what is wrong with an answer, and says where, what was expected and what was found."""

import copy
import json
import time

import pytest

from continuity_spec.openapi.answers import AnswerValidator
from continuity_spec.openapi.document import load_openapi

CHAT = ("POST", "/v1/chat/completions")
RESPONSES = ("POST", "/v1/responses")
HEADERS = {"x-my-session": ["api-1"], "content-type": ["application/json"]}
ERROR = {"error": {"message": "No.", "type": "server_error", "param": None, "code": None}}

validator = AnswerValidator("X-My-Session")


def example(name):
    return copy.deepcopy(load_openapi()["components"]["examples"][name]["value"])


def stream(path):
    """The documented events of a stream, as the kit reads them: JSON where it is JSON."""
    content = load_openapi()["paths"][path]["post"]["responses"]["200"]["content"]["text/event-stream"]
    data = [event["value"]["data"] for event in content["examples"].values()]
    return [text if text == "[DONE]" else json.loads(text) for text in data]


def of_body(body, operation=CHAT, status=200, headers=HEADERS):
    return validator.problems(*operation, status, "application/json", headers, body)


def of_events(events, operation=CHAT):
    return validator.problems(*operation, 200, "text/event-stream", HEADERS, None, events)


def changed(pointer, value, name="ChatCompletion"):
    """An example with another value in one place."""
    body = node = example(name)
    *parents, last = [int(key) if key.isdigit() else key for key in pointer.split("/")]
    for key in parents:
        node = node[key]
    node[last] = value
    return body


class TestWhatIsRight:
    @pytest.mark.parametrize("name", ["ChatCompletion", "RotatedChatCompletion", "ToolCallingChatCompletion"])
    def test_a_chat_completion(self, name):
        assert of_body(example(name)) == []

    @pytest.mark.parametrize("name", ["Response", "ToolCallingResponse"])
    @pytest.mark.parametrize("operation", [RESPONSES, ("GET", "/v1/responses/resp_1")])
    def test_a_response(self, name, operation):
        assert of_body(example(name), operation) == []

    @pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
    def test_the_events_of_a_stream(self, path):
        assert [problem for event in stream(path) for problem in of_events([event], ("POST", path))] == []

    def test_other_fields_of_openai_are_allowed(self):
        body = {**example("ChatCompletion"), "service_tier": "default", "system_fingerprint": "fp_1", "x": {"y": 1}}

        assert of_body(body) == []

    def test_an_event_of_openai_that_the_document_does_not_know(self):
        assert of_events([{"type": "response.reasoning_text.delta", "delta": "Hm"}], RESPONSES) == []

    def test_a_chunk_without_choices_that_has_the_usage(self):
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        chunk = {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [],
            "usage": usage,
        }

        assert of_events([chunk, {**chunk, "usage": None}]) == []

    def test_a_stream_that_the_client_left_before_the_first_event(self):
        assert of_events([]) == []

    def test_parameters_and_case_of_the_content_type_do_not_count(self):
        kind = "Application/JSON; charset=utf-8"

        assert validator.problems(*CHAT, 200, kind, HEADERS, example("ChatCompletion")) == []

    def test_a_query_is_no_part_of_the_path(self):
        page = {"object": "list", "data": [], "has_more": False}

        assert of_body(page, ("get", "/v1/sessions?limit=5")) == []

    def test_an_escaped_id_is_one_segment_of_the_path(self):
        assert of_body(ERROR, ("GET", "/v1/sessions/..%2Fx"), 404) == []


class TestStatusAndOperation:
    def test_an_unknown_path(self):
        assert of_body({}, ("GET", "/v2/chat")) == ["operation: expected one of openapi.yaml, found GET /v2/chat"]

    def test_an_unknown_method(self):
        assert of_body({}, ("PUT", "/v1/models")) == ["operation: expected one of openapi.yaml, found PUT /v1/models"]

    def test_a_segment_too_many(self):
        assert of_body({}, ("GET", "/v1/responses/a/b")) != []

    def test_an_undocumented_status(self):
        assert of_body({}, ("GET", "/health"), 418) == ["status: expected one of 200, 405, 500, 503, found 418"]

    def test_an_undocumented_content_type(self):
        found = validator.problems(*CHAT, 200, "text/html", HEADERS, None)

        assert found == ["content type: expected application/json or text/event-stream, found text/html"]

    def test_no_content_type(self):
        assert validator.problems("GET", "/health", 200, "", {}, {"status": "ok"}) == [
            "content type: expected application/json, found none"
        ]

    def test_an_error_has_no_event_stream(self):
        assert validator.problems(*CHAT, 400, "text/event-stream", HEADERS, None, [ERROR]) != []


class TestHeaders:
    def test_the_continuity_header_is_missing_under_the_name_of_the_target(self):
        headers = {"x-hermes-session-id": ["api-1"]}

        assert of_body(example("ChatCompletion"), headers=headers) == [
            "header X-My-Session: expected exactly one, found none"
        ]

    def test_the_documented_name_is_one_name_among_others(self):
        headers = {"x-hermes-session-id": ["api-1"]}
        answer = (*CHAT, 200, "application/json", headers, example("ChatCompletion"))

        assert AnswerValidator("x-hermes-session-id").problems(*answer) == []

    def test_the_continuity_header_comes_twice(self):
        assert of_body(example("ChatCompletion"), headers={"x-my-session": ["a", "b"]}) == [
            'header X-My-Session: expected exactly one, found ["a", "b"]'
        ]

    @pytest.mark.parametrize(
        ("value", "expected"),
        [("", "1 character or more"), ("a" * 257, "256 characters or fewer"), ("a\x01", "text that matches")],
    )
    def test_the_continuity_header_has_a_bad_value(self, value, expected):
        found = of_body(example("ChatCompletion"), headers={"x-my-session": [value]})

        assert found[0].startswith(f"header X-My-Session: expected {expected}")

    @pytest.mark.parametrize("value", ["1", "120", "Fri, 31 Dec 1999 23:59:59 GMT"])
    def test_a_busy_session_says_when_to_try_again(self, value):
        assert of_body(ERROR, status=409, headers={"retry-after": [value]}) == []

    def test_a_conflict_that_does_not_pass_has_no_time_to_try_again(self):
        assert of_body(ERROR, status=409) == []

    def test_a_refused_method_lists_the_others(self):
        assert of_body(ERROR, status=405) == ["header Allow: expected exactly one, found none"]

    def test_a_busy_session_says_nonsense(self):
        assert of_body(ERROR, status=409, headers={"retry-after": ["soon"]}) != []

    def test_an_error_need_not_name_the_session(self):
        assert of_body(ERROR, status=502, headers={}) == []


class TestBody:
    @pytest.mark.parametrize(
        ("pointer", "value", "expected"),
        [
            ("object", "chat", 'body /object: expected "chat.completion", found "chat"'),
            ("created", "now", 'body /created: expected integer, found "now"'),
            ("choices", [], "body /choices: expected 1 item or more, found []"),
            ("choices/0/index", -1, "body /choices/0/index: expected 0 or more, found -1"),
            ("choices/0/message/role", "user", 'body /choices/0/message/role: expected "assistant", found "user"'),
            ("choices/0/message/content", 7, "body /choices/0/message/content: expected string or null, found 7"),
            ("session/id", "a b", 'body /session/id: expected text that matches ^[!-~]+$, found "a b"'),
            ("session/degraded", "no", 'body /session/degraded: expected boolean, found "no"'),
            ("session", {"id": "a"}, "body /session: expected the fields rotated_from, degraded, found only id"),
        ],
    )
    def test_a_problem_says_where_what_was_expected_and_what_was_found(self, pointer, value, expected):
        assert of_body(changed(pointer, value)) == [expected]

    def test_an_empty_object_lacks_all_at_once(self):
        assert of_body({}) == ["body: expected the fields id, object, created, model, choices, found no field"]

    @pytest.mark.parametrize(("body", "found"), [(None, "null"), ([], "[]"), ("Hello", '"Hello"'), (7, "7")])
    def test_something_that_is_not_an_object(self, body, found):
        assert of_body(body) == [f"body: expected object, found {found}"]

    def test_what_was_found_is_cut(self):
        (found,) = of_body(changed("choices/0/message/content", ["x" * 5000]))

        assert len(found) < 160
        assert found.endswith("xxx…")

    def test_of_many_problems_only_the_first_are_listed(self):
        assert len(of_body(changed("choices", [7] * 500))) == 20

    @pytest.mark.parametrize("body", [{}, {"error": "No."}, {"error": {"message": "No."}}, {"detail": "No."}])
    def test_an_error_without_the_envelope(self, body):
        assert of_body(body, status=400) != []

    @pytest.mark.parametrize(
        ("pointer", "value", "where"),
        [
            ("output/0/content/0/text", None, "body /output/0/content/0/text"),
            ("output/0/role", "user", "body /output/0/role"),
            ("status", "done", "body /status"),
            ("usage", {"input_tokens": 1}, "body /usage"),
        ],
    )
    def test_a_response_is_read_to_its_depth(self, pointer, value, where):
        (found,) = of_body(changed(pointer, value, "Response"), RESPONSES)

        assert found.startswith(f"{where}: ")


class TestEvents:
    def test_the_event_is_named_by_its_number(self):
        events = stream("/v1/chat/completions")
        events[1] = {**events[1], "choices": None}

        assert of_events(events) == ["event 2 /choices: expected array, found null"]

    def test_events_whose_numbers_do_not_grow(self):
        created, delta, completed, _ = stream("/v1/responses")
        repeated = {**completed, "sequence_number": delta["sequence_number"]}

        assert of_events([created, delta, completed], RESPONSES) == []
        assert of_events([created, delta, repeated], RESPONSES) == [
            "sequence_number of response.completed: expected more than 3, found 3"
        ]

    def test_a_bare_string_other_than_the_end_marker(self):
        assert of_events(["[DONE]", "bye"]) == ['event 2: expected object, found "bye"']

    def test_an_error_in_a_stream_has_the_envelope(self):
        assert of_events([ERROR]) == []
        assert of_events([{"error": "No."}]) == ['event 1 /error: expected object, found "No."']

    def test_an_event_of_responses_needs_its_fields(self):
        assert of_events([{"type": "response.output_text.delta", "sequence_number": 3}], RESPONSES) == [
            "event 1: expected the fields delta, found only type, sequence_number",
            "event 1: expected the fields item_id, output_index, content_index, found only type, sequence_number",
        ]

    def test_an_event_of_responses_needs_a_type(self):
        assert of_events([{"delta": "Hm"}], RESPONSES) == ["event 1: expected the fields type, found only delta"]


class TestSpeed:
    @pytest.mark.parametrize(("operation", "name"), [(CHAT, "ChatCompletion"), (RESPONSES, "Response")])
    def test_an_answer_takes_less_than_a_millisecond(self, operation, name):
        body = example(name)
        seconds = []
        for _ in range(100):
            started = time.process_time()
            of_body(body, operation)
            seconds.append(time.process_time() - started)

        assert min(seconds) < 0.001

"""What really goes over the wire is what openapi.yaml says: the requests of the real `openai` client, and every answer to them."""

import json

import openai
import pytest
from jsonschema import Draft202012Validator
from reference_process import HEADER
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from continuity_conformance.http.messages import event_data
from continuity_conformance.http.sse import EventStreamDecoder
from continuity_spec.openapi.answers import AnswerValidator
from continuity_spec.openapi.document import load_openapi

URI = "urn:the-document"
REGISTRY = Registry().with_resource(URI, DRAFT202012.create_resource(load_openapi()))
SCHEMAS = {"/v1/chat/completions": "ChatRequest", "/v1/responses": "ResponseRequest"}
TOOL = {"name": "clock", "description": "The time.", "parameters": {"type": "object", "properties": {}}}
contract = AnswerValidator(HEADER)


@pytest.fixture
def answers():
    """Every answer that the client got, with its request."""
    return []


@pytest.fixture
def recorded(server, answers):
    def keep(response):
        response.read()
        answers.append(response)

    with (
        openai.DefaultHttpxClient(event_hooks={"response": [keep]}) as http,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="key-of-alice", max_retries=0, http_client=http) as client,
    ):
        yield client


def violations(response):
    """What is wrong with the body of a request."""
    schema = {"$ref": f"{URI}#/components/schemas/{SCHEMAS[response.request.url.path]}"}
    body = json.loads(response.request.content)
    return [error.message for error in Draft202012Validator(schema, registry=REGISTRY).iter_errors(body)]


def problems(response):
    """What is wrong with an answer."""
    headers = {name.lower(): response.headers.get_list(name) for name in response.headers}
    kind = response.headers["content-type"]
    streamed = kind.startswith("text/event-stream")
    body = None if streamed else response.json()
    said = event_data(EventStreamDecoder().feed(response.content)) if streamed else ()
    request = response.request
    return contract.problems(request.method, request.url.path, response.status_code, kind, headers, body, said)


def test_chat_of_every_kind(recorded, answers, session):
    ask = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    parts = [{"role": "user", "content": [{"type": "text", "text": "What is this?"}]}]
    create = recorded.chat.completions.create
    create(model="m", messages=ask)
    create(model="m", messages=ask, extra_headers={HEADER: session, "Idempotency-Key": "once"}, temperature=0.5, n=1)
    create(model="m", messages=parts, seed=7, stop=["."], user="u", metadata={"a": "b"}, max_completion_tokens=9)
    create(model="m", messages=parts, tools=[{"type": "function", "function": TOOL}], tool_choice="auto")
    list(create(model="m", messages=ask, stream=True, stream_options={"include_usage": True}))

    assert [violations(response) for response in answers] == [[]] * 5
    assert [problems(response) for response in answers] == [[]] * 5


def test_responses_of_every_kind(recorded, answers):
    create = recorded.responses.create
    first = create(model="m", input="Hello", instructions="Be brief.", metadata={"a": "b"}, temperature=0.5)
    said = [{"role": "user", "content": [{"type": "input_text", "text": "And then?"}]}]
    create(model="m", input=said, previous_response_id=first.id, tools=[{"type": "function", **TOOL, "strict": False}])
    create(model="m", input="Hello", conversation="traffic", store=True, max_output_tokens=9, parallel_tool_calls=True)
    create(model="m", input="Hello", store=False)
    list(create(model="m", input="Hello", stream=True))
    made = len(answers)
    recorded.responses.retrieve(first.id)
    recorded.responses.delete(first.id)

    assert [violations(response) for response in answers[:made]] == [[]] * made
    assert [problems(response) for response in answers] == [[]] * (made + 2)


def test_what_the_client_is_refused(recorded, answers):
    with pytest.raises(openai.NotFoundError):
        recorded.responses.retrieve("resp_unknown")
    with pytest.raises(openai.NotFoundError):
        recorded.responses.create(model="m", input="Hello", previous_response_id="resp_unknown")
    with pytest.raises(openai.BadRequestError):
        recorded.chat.completions.create(model="m", messages=[])
    with pytest.raises(openai.AuthenticationError):
        recorded.with_options(api_key="wrong").models.list()

    assert [problems(response) for response in answers] == [[]] * 4


def test_sessions_and_controls(server, session):
    server.chat("Hello", session)
    paths = [
        "/health",
        "/v1/models",
        "/v1/capabilities",
        "/v1/sessions?limit=3",
        f"/v1/sessions/{session.replace(' ', '%20')}",
    ]
    paths.append(f"{paths[-1]}/messages")
    asked = [("GET", path, server.request("GET", path)) for path in paths]
    controls = {
        "evict": {"response_id": "r"},
        "lineage": {"session_id": session},
        "fork": {"session_id": session},
        "fault": {"what": "read", "on": False},
        "link": {"session_id": session, "next": None},
        "compress": {"session_id": session},
    }
    token = {"X-Conformance-Token": "control-token"}
    for name, body in controls.items():
        path = f"/conformance/v1/{name}"
        asked.append(("POST", path, server.request("POST", path, body, token)))
    asked.append(("DELETE", paths[4], server.request("DELETE", paths[4])))
    found = {
        f"{method} {path}": contract.problems(method, path, status, headers["Content-Type"], {}, body)
        for method, path, (status, headers, body) in asked
    }

    assert found == {label: [] for label in found}
    assert [status for _, _, (status, _, _) in asked] == [200] * len(asked)

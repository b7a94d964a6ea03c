"""Real servers in real processes on real ports, and the real `openai` client."""

import itertools

import openai
import pytest
from reference_process import KEYS, running
from scripted_model import ScriptedModel

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server():
    """The server with its built-in model, and two principals."""
    with running("--db", ":memory:", *KEYS, "--cors", "https://app.example", "--max-responses", "5") as started:
        yield started


@pytest.fixture(scope="session")
def _model():
    with ScriptedModel() as model:
        yield model


@pytest.fixture
def model(_model):
    _model.calls.clear()
    _model.steps.clear()
    return _model


@pytest.fixture(scope="session")
def _scripted(_model):
    with running("--db", ":memory:", *KEYS, "--model", _model.url) as started:
        yield started


@pytest.fixture
def scripted(_scripted, model):  # noqa: ARG001 - with a fresh script
    """The server whose model a test scripts."""
    return _scripted


@pytest.fixture
def session():
    """An id that no other test uses."""
    return f"session-{next(_numbers)}"


@pytest.fixture
def client(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="key-of-alice", max_retries=0) as client:
        yield client

"""The targets azure-agentserver and letta: what their profiles say. Nothing is installed here, and only our own agent is played."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from continuity_conformance.plugin import Profile, Say
from continuity_conformance.probe.server import Probe, listening
from continuity_plugins import letta
from continuity_plugins.azure_agentserver import target as azure
from continuity_plugins.azure_agentserver.target import AzureAgentServerTarget
from continuity_plugins.letta import LettaTarget

Installed = dict[str, tuple[list[str], dict[str, object]]]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Installed:
    """What would be installed: packages and settings by the name of their environment."""
    found: Installed = {}

    def install(name: str, packages: Sequence[str], _: Say, **settings: object) -> Path:
        found[name] = (list(packages), settings)
        return Path("/installed", name)

    monkeypatch.setattr(azure, "python_environment", install)
    monkeypatch.setattr(letta, "npm_environment", install)
    monkeypatch.setattr(letta, "node_that", lambda *_: Path("/installed/bin/node"))
    return found


@pytest.fixture
def azure_profile(installed: Installed) -> Profile:
    assert installed == {}
    return AzureAgentServerTarget().profile("2.3.0", print)


@pytest.fixture
def letta_profile(installed: Installed) -> Profile:
    assert installed == {}
    return LettaTarget().profile("0.32.18", print)


def test_azure_is_installed_in_the_version_that_was_asked_for(azure_profile: Profile, installed: Installed):
    assert azure_profile.name == "azure-agentserver 2.3.0"
    assert installed["azure-agentserver-2.3.0"][0] == ["azure-ai-agentserver-responses==2.3.0", "httpx"]


def test_the_agent_of_azure_is_shipped_and_listens_on_loopback_alone(azure_profile: Profile):
    assert azure_profile.process is not None
    python, program = azure_profile.process.start

    assert python == "/installed/azure-agentserver-2.3.0/bin/python"
    assert 'host.run(host="127.0.0.1"' in Path(program).read_text(encoding="utf-8")


def test_azure_is_examined_over_responses_as_two_people(azure_profile: Profile):
    path, body = azure_profile.first_turn("red")

    assert (path, body["input"]) == ("/v1/responses", "red")
    assert azure_profile.headers_of("bob")[-1] == ("x-agent-user-id", "bob")


class TextResponse:
    """What the agent gives to the library."""

    def __init__(self, _: object, __: object, text: AsyncIterator[str]) -> None:
        self.text = text


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Our agent, with a library that is not there."""
    library = ModuleType("azure.ai.agentserver.responses")
    for name in ("ResponsesAgentServerHost", "ResponsesServerOptions"):
        setattr(library, name, None)
    library.TextResponse = TextResponse  # type: ignore[attr-defined] # a module of this test
    monkeypatch.setitem(sys.modules, library.__name__, library)
    for package in ("azure", "azure.ai", "azure.ai.agentserver"):
        monkeypatch.setitem(sys.modules, package, ModuleType(package))
    found = ModuleType("agent")
    exec(compile((Path(azure.__file__).with_name("agent.py")).read_text(), "agent.py", "exec"), found.__dict__)
    return found


class Conversation:
    """What the library knows of a conversation."""

    async def get_history(self) -> list[dict[str, Any]]:
        spoken = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Noted."}]}
        return [{"type": "message", "role": "user", "content": "[u:0001] red"}, {"type": "reasoning"}, spoken]

    async def get_input_items(self) -> list[dict[str, Any]]:
        return [{"role": "user", "content": [{"type": "input_text", "text": "[u:0002] blue"}]}]


async def answered(agent: ModuleType, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Sequence[Mapping[str, Any]]]:
    probe = Probe("summar")
    async with listening(probe) as url:
        monkeypatch.setenv("MODEL_URL", url)
        response = await agent.answer({"instructions": "Be brief."}, Conversation(), None)
        text = "".join([piece async for piece in response.text])
    call = await probe.call(1)
    assert call is not None
    return text, call.messages


def test_the_agent_of_azure_passes_everything_on_and_nothing_else(agent: ModuleType, monkeypatch: pytest.MonkeyPatch):
    text, messages = asyncio.run(answered(agent, monkeypatch))

    assert text.startswith("Noted.")
    assert [(each["role"], each["content"]) for each in messages] == [
        ("system", "Be brief."),
        ("user", "[u:0001] red"),
        ("assistant", "Noted."),
        ("user", "[u:0002] blue"),
    ]


def test_letta_is_installed_without_scripts_and_without_what_npm_lacks(letta_profile: Profile, installed: Installed):
    packages, settings = installed["letta-0.32.18"]

    assert letta_profile.name == "letta 0.32.18"
    assert packages == ["@letta-ai/letta-code@0.32.18"]
    assert settings["arguments"] == ["--ignore-scripts"]
    assert set(settings["overrides"]) > {"@letta-ai/trajectory"}  # type: ignore[call-overload] # a mapping


def test_the_token_of_letta_is_in_no_process_list(letta_profile: Profile):
    assert letta_profile.process is not None

    assert letta_profile.process.files["token"] == letta_profile.principals["alice"]
    assert letta_profile.principals["alice"] not in " ".join(letta_profile.process.start)
    assert "ws://127.0.0.1:{port}" in letta_profile.process.start


def test_the_agent_of_letta_has_the_probe_as_its_model(letta_profile: Profile):
    assert letta_profile.process is not None
    files = letta_profile.process.files
    (agent,) = (json.loads(text) for name, text in files.items() if name.startswith("data/agents/"))
    providers = json.loads(files["data/providers/auth.json"])["providers"]

    assert agent["name"] == letta_profile.model
    assert providers[agent["model"].partition("/")[0]]["base_url"] == "{probe}"


def test_the_tools_of_letta_are_commands(letta_profile: Profile):
    assert letta_profile.writes is not None
    filled = letta_profile.writes.arguments.replace("{name}", "note.txt").replace("{content}", "red")

    assert json.loads(filled)["command"] == "printf %s 'red' > 'note.txt'"

"""The bundled targets that are installed: what their profiles say. Nothing is installed here, and nothing is started."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from continuity_conformance.plugin import Profile, Say
from continuity_plugins import mastra, openhands
from continuity_plugins.mastra import MastraTarget
from continuity_plugins.openhands import OpenHandsTarget

Installed = dict[str, list[str]]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Installed:
    """What would be installed: the packages by the name of their environment."""
    found: Installed = {}

    def install(name: str, packages: Sequence[str], _: Say, **__: object) -> Path:
        found[name] = list(packages)
        return Path("/installed", name)

    monkeypatch.setattr(openhands, "python_environment", install)
    monkeypatch.setattr(openhands, "python_from", lambda *_: "python3.12")
    monkeypatch.setattr(mastra, "npm_environment", install)
    monkeypatch.setattr(mastra, "node_that", lambda *_: Path("/installed/node"))
    return found


def in_files(profile: Profile, name: str) -> Mapping[str, object]:
    assert profile.process is not None
    return json.loads(profile.process.files[name])


def test_openhands_is_installed_with_the_libraries_of_its_version(installed: Installed):
    profile = OpenHandsTarget().profile("1.58.0", print)

    assert profile.name == "openhands 1.58.0"
    assert installed == {
        "openhands-1.58.0": [
            "openhands-agent-server==1.58.0",
            "openhands-sdk==1.58.0",
            "openhands-tools==1.58.0",
        ]
    }


def test_a_wheel_of_openhands_brings_the_libraries_that_it_asks_for(installed: Installed):
    OpenHandsTarget().profile("/a/openhands_agent_server-1.59.0-py3-none-any.whl", print)

    ((requirement,),) = installed.values()
    assert requirement == "openhands-agent-server @ file:///a/openhands_agent_server-1.59.0-py3-none-any.whl"


@pytest.mark.usefixtures("installed")
def test_the_key_of_openhands_is_in_no_process_list():
    profile = OpenHandsTarget().profile("1.58.0", print)

    assert profile.process is not None
    assert profile.principals["alice"] in profile.process.env.values()
    assert profile.principals["alice"] not in " ".join(profile.process.start)
    assert profile.headers_of("alice")[-1] == ("X-Session-API-Key", profile.principals["alice"])


@pytest.mark.usefixtures("installed")
def test_openhands_is_asked_with_uuids_and_its_model_is_the_probe():
    profile = OpenHandsTarget().profile("1.58.0", print)

    assert profile.ids is not None
    assert profile.ids.fits(profile.ids.id_of("seed"))
    assert in_files(profile, "home/profiles/probe.json")["base_url"] == "{probe}"
    assert in_files(profile, "home/agent-profiles/default.json")["llm_profile_ref"] == "probe"


@pytest.mark.parametrize("version", ["1.71.0", "1.70.0"])
def test_mastra_is_chosen_by_the_version_of_its_core(version: str, installed: Installed):
    profile = MastraTarget().profile(version, print)

    assert profile.name == f"mastra {version}"
    assert installed[f"mastra-{version}"][0] == f"@mastra/core@{version}"


@pytest.mark.usefixtures("installed")
def test_a_turn_of_mastra_names_the_agent_and_no_model():
    profile = MastraTarget().profile("1.71.0", print)
    body = profile.turn_body({"model": "any", "input": "red", "conversation": "a"})

    assert body == {"agent_id": "agent", "input": "red", "conversation_id": "a"}
    assert profile.new_conversation() == {"agent_id": "agent"}


@pytest.mark.usefixtures("installed")
def test_the_program_of_mastra_is_shipped_and_listens_on_loopback_alone():
    profile = MastraTarget().profile("1.71.0", print)
    assert profile.process is not None
    _, program, modules, *_ = profile.process.start

    assert "hostname: '127.0.0.1'" in Path(program).read_text(encoding="utf-8")
    assert modules == "/installed/mastra-1.71.0/node_modules"


@pytest.mark.usefixtures("installed")
def test_mastra_never_evicts_a_response():
    assert not MastraTarget().profile("1.71.0", print).evicts

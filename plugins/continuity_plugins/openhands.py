"""OpenHands agent server: an agent with tools behind /v1/chat/completions. A header with a UUID names the session, and every answer reports it.

It is for one person: several keys are there for their rotation, and each of them sees everything. Its /v1/responses keeps nothing. A turn of an existing session takes two seconds
or more, because the server polls for its end. Each version is installed from PyPI in its own environment, and needs Python 3.12 or newer.
"""

import json
from typing import Final

from continuity_conformance.plugin import (
    Build,
    Filling,
    IdForm,
    KeyField,
    Limits,
    Process,
    Profile,
    Say,
    ToolCall,
    python_environment,
)
from continuity_plugins.runtimes import python_from

_KEY: Final = "key-of-alice-for-tests-only"
_PYTHON: Final = 12
"""The oldest minor version of Python 3 that it supports."""
_HOME: Final = "{folder}/home"
_MODEL: Final = {
    "model": "openai/probe",
    "api_key": "none",
    "base_url": "{probe}",
    "num_retries": 0,
    "usage_id": "agent",
    "schema_version": 1,
}
_AGENT: Final = {
    "schema_version": 4,
    "agent_kind": "openhands",
    "id": "6f1c1f0e-2f5b-4f7e-9d5e-3b1c5a7d9e02",
    "name": "default",
    "llm_profile_ref": "probe",
    "public_skills": [],
    "condenser": {"condenser_kind": "llm_summarizing", "max_tokens": 8500},
}
"""Without `public_skills` each session tries to download them. Without `max_tokens` the context is compressed after 240 events; prompt and tools take most of these tokens."""
_FILLING: Final = Filling(3, 3000)
_ENVIRONMENT: Final = {
    "OH_SESSION_API_KEYS_0": _KEY,
    "OH_SECRET_KEY": "secret-for-tests-only",
    "OH_PERSISTENCE_DIR": _HOME,
    "OH_CONVERSATIONS_PATH": "{folder}/conversations",
    "OH_WORKSPACE_PATH": "{folder}/workspace",
    "OH_LEASE_TTL_SECONDS": "0",
    "OH_MAX_CONCURRENT_RUNS": "100",
    "OH_ENABLE_VSCODE": "false",
    "OH_ENABLE_BROWSER": "false",
    "OH_PRELOAD_TOOLS": "false",
    "DO_NOT_TRACK": "1",
    "LOG_LEVEL": "WARNING",
    "LOG_RICH_TRACEBACKS": "false",
    "PYTHONWARNINGS": "ignore",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class OpenHandsTarget:
    """OpenHands agent server: a header with a UUID names the session."""

    versions = ("1.58.0",)
    any_version = any_wheel = any_checkout = True

    def profile(self, version: str, say: Say) -> Profile:
        build = Build(version)
        home = python_environment(
            f"openhands-{build.version}", _requirements(build), say, python=python_from(_PYTHON, "OpenHands")
        )
        return Profile(
            name=f"openhands {build.title}",
            header="X-OpenHands-ServerConversation-ID",
            model="openhands_probe",
            ids=IdForm.read("uuid"),
            principals={"alice": _KEY},
            key_field=KeyField.read("X-Session-API-Key: {key}"),
            options={"derivation": "none", "compaction": "in-place"},
            offers=frozenset({"streaming", "compression", "sessions"}),
            single_user=True,
            limits=Limits(parallel=8, at_once=6, turn_seconds=90, ids=20, servers=2, disturbed=2, examples=2),
            process=Process(
                (str(home / "bin" / "agent-server"), "--host", "127.0.0.1", "--port", "{port}"),
                env=_ENVIRONMENT,
                seconds=180,
                files={
                    "home/profiles/probe.json": json.dumps(_MODEL, indent=1),
                    "home/agent-profiles/default.json": json.dumps(_AGENT, indent=1),
                    "workspace/README": "the files of the agent\n",
                },
                isolated=True,
                warm_up=90,
                stop_seconds=20,
            ),
            filling=_FILLING,
            sessions="/api/conversations",
            summary="context-aware state summary",
            writes=ToolCall("terminal", '{"command": "printf %s {content} > {name}"}'),
            reads=ToolCall("terminal", '{"command": "cat {name}"}'),
        )


def _requirements(build: Build) -> list[str]:
    """The server and its two libraries, which are released together. Without their versions, pip tries many combinations."""
    server = build.requirement("openhands-agent-server")
    return [server] if build.is_wheel else [server, f"openhands-sdk=={build.asked}", f"openhands-tools=={build.asked}"]

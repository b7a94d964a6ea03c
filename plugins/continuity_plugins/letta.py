"""Letta Code: an agent with memory, in Node. Its server reads the session from a header and never reports it.

It is for one person (one token). Chat and /v1/responses keep a session by the header `x-letta-chat-key`; responses also continue by `previous_response_id`. There is no
`conversation`, and no GET or DELETE of a response. The agent and its model are two files in its data folder, so nothing has to be set up by a command. Its server ends when its parent
does, so it cannot be started by a shell that ends.
"""

import base64
import json
from typing import Final

from continuity_conformance.plugin import Filling, Limits, Process, Profile, Say, ToolCall, npm_environment
from continuity_plugins.runtimes import node_that

_KEY: Final = "token-of-alice-for-tests-only"
_PACKAGE: Final = "@letta-ai/letta-code"
_OVERRIDES: Final = {
    "@janhapke/sharp-electron": "0.35.4-electron.1",
    "@letta-ai/letta-agent-sdk": "npm:ws@^8.19.0",
    "@letta-ai/trajectory": "npm:ws@^8.19.0",
}
"""Dependencies that npm does not have, in the version that it asks for or at all. Its program has all code of the server in one file and imports only `ws`."""
_AGENT: Final = "agent-local-00000000-0000-4000-8000-000000000001"
_CONTEXT: Final = 30_000
_FILLING: Final = Filling(4, 24_000)
"""It compresses before a call that would take more than 80 % of the context. It counts 4 characters as a token."""
_LIMITS: Final = Limits(parallel=6, at_once=6, turn_seconds=60, ids=60, disturbed=2, examples=2, body=20 * 1024 * 1024)
"""It asks a model that fails again and again, for 36 s, so that most of a run is waiting."""
_TIME: Final = "2026-01-01T00:00:00.000Z"
_PROVIDERS: Final = {
    "version": 1,
    "providers": {
        "openai-compatible": {
            "id": "local-provider-openai-compatible",
            "name": "openai-compatible",
            "provider_type": "openai-compatible",
            "provider_category": "byok",
            "auth": {"type": "api", "key": "none"},
            "base_url": "{probe}",
            "created_at": _TIME,
            "updated_at": _TIME,
        }
    },
}
_AGENT_FILE: Final = {
    "id": _AGENT,
    "name": "probe-agent",
    "description": "for tests",
    "system": "You are an agent for tests.",
    "tags": ["origin:letta-code"],
    "model": "openai-compatible/probe",
    "model_settings": {"context_window_limit": _CONTEXT, "parallel_tool_calls": True},
}
_ENVIRONMENT: Final = {
    "LETTA_LOCAL_BACKEND_DIR": "{folder}/data",
    "DISABLE_AUTOUPDATER": "1",
    "LETTA_CODE_TELEM": "0",
    "LETTA_CODE_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
}
_SUMMARY: Final = "being evicted from the BEGINNING of your context|Your task is to create a detailed summary"


class LettaTarget:
    """Letta Code from npm: its server with the OpenAI endpoints switched on."""

    versions = ("0.32.18",)
    any_version = True

    def profile(self, version: str, say: Say) -> Profile:
        node = node_that(lambda number: number >= (22, 19), "Letta Code", "22.19", say)
        home = npm_environment(
            f"letta-{version}",
            [f"{_PACKAGE}@{version}"],
            say,
            arguments=["--ignore-scripts"],
            overrides=_OVERRIDES,
            node=node.parent,
        )
        program = str(home / "node_modules" / _PACKAGE / "letta.js")
        address = ("--listen", "ws://127.0.0.1:{port}", "--openai-api")
        token = ("--ws-auth", "capability-token", "--ws-token-file", "{folder}/token")
        return Profile(
            name=f"letta {version}",
            header="x-letta-chat-key",
            model="probe-agent",
            slugs="none",
            principals={"alice": _KEY},
            options={"derivation": "none", "compaction": "in-place", "tells": "nothing"},
            offers=frozenset({"responses", "streaming", "idempotency", "compression"}),
            single_user=True,
            evicts=False,
            limits=_LIMITS,
            process=Process(
                (str(node), program, "--backend", "local", "server", *address, *token),
                ready="/readyz",
                env=_ENVIRONMENT,
                seconds=60,
                files={
                    "token": _KEY,
                    "data/providers/auth.json": json.dumps(_PROVIDERS),
                    f"data/agents/{_file_name(_AGENT)}": json.dumps(_AGENT_FILE),
                },
                isolated=True,
                warm_up=60,
            ),
            filling=_FILLING,
            summary=_SUMMARY,
            writes=_bash("printf %s '{content}' > '{name}'", "Write a file"),
            reads=_bash("cat '{name}'", "Read a file"),
        )


def _file_name(agent: str) -> str:
    return base64.urlsafe_b64encode(agent.encode()).decode().rstrip("=") + ".json"


def _bash(command: str, description: str) -> ToolCall:
    """Its tool for commands, which works in the folder that the server was started in; its tools for files want whole paths."""
    return ToolCall("Bash", json.dumps({"command": command, "description": description}))

"""nanobot: a personal assistant. Its API reads the session from the body field `session_id` and never reports it.

It is for one person (one key), keeps each session in a file, serialises the turns of a session, and accepts one user message per request: no
history and no system prompt. Each version is installed from PyPI (`nanobot-ai[api]`) in its own environment.
"""

import json
from typing import Final

from continuity_conformance.plugin import Build, Filling, Limits, Process, Profile, Say, ToolCall, python_environment

_KEY: Final = "key-of-alice-for-tests-only"
_FILLING: Final = Filling(3, 40_000)
"""It cannot download tiktoken's table here, so it counts each byte as a token. Of the context below, the output takes 8,192 tokens, prompt and tools about 25,000."""
_CONFIG: Final = {
    "agents": {
        "defaults": {
            "workspace": "{folder}/workspace",
            "model": "probe",
            "provider": "custom",
            "contextWindowTokens": 140_000,
            "timezone": "UTC",
            "timezoneMode": "manual",
            "dream": {"enabled": False},
        }
    },
    "providers": {"custom": {"apiKey": "none", "apiBase": "{probe}"}},
    "api": {"apiKey": _KEY, "timeout": 60},
    "gateway": {"heartbeat": {"enabled": False}},
    "tools": {"restrictToWorkspace": True},
}


class NanobotTarget:
    """nanobot-ai: the request body names the session, and answers do not report it."""

    versions = ("0.3.5",)
    any_version = any_wheel = any_checkout = True

    def profile(self, version: str, say: Say) -> Profile:
        build = Build(version)
        home = python_environment(f"nanobot-{build.version}", [build.requirement("nanobot-ai[api]")], say)
        start = ("serve", "--host", "127.0.0.1", "--port", "{port}", "--config", "{folder}/config.json")
        return Profile(
            name=f"nanobot {build.title}",
            body="session_id",
            model="probe",
            principals={"alice": _KEY},
            options={"derivation": "none", "compaction": "in-place", "tells": "nothing"},
            offers=frozenset({"streaming", "compression"}),
            single_user=True,
            limits=Limits(parallel=8, at_once=8, turn_seconds=60, body=20 * 1024 * 1024),
            process=Process(
                (str(home / "bin" / "nanobot"), *start, "--workspace", "{folder}/workspace"),
                seconds=90,
                files={"config.json": json.dumps(_CONFIG, indent=1)},
                isolated=True,
                warm_up=60,
            ),
            filling=_FILLING,
            summary="Create a compact replacement checkpoint for this session",
            writes=ToolCall("write_file", '{"path": "{name}", "content": "{content}"}'),
            reads=ToolCall("read_file", '{"path": "{name}"}'),
        )

"""OpenClaw: a personal assistant in Node. Its gateway reads the session from a header and never reports it.

Only the messages that its model receives show the session of a turn. It is for one person (one token), ignores the case of session keys, has /v1/responses
without `conversation`, and takes half a minute to start. Each version is an npm package; if the user's node is too old, one is installed from npm.
"""

import json
from typing import Final

from continuity_conformance.plugin import Limits, Process, Profile, Say, npm_environment
from continuity_plugins.runtimes import node_that

_KEY: Final = "token-of-alice-for-tests-only"
_CONFIG: Final = {
    "gateway": {
        "mode": "local",
        "bind": "loopback",
        "auth": {"mode": "token", "token": _KEY},
        "http": {"endpoints": {"chatCompletions": {"enabled": True}, "responses": {"enabled": True}}},
    },
    "models": {
        "providers": {
            "probe": {
                "baseUrl": "{probe}",
                "apiKey": "none",
                "api": "openai-completions",
                "models": [{"id": "probe", "name": "probe"}],
            }
        }
    },
    "agents": {
        "defaults": {
            "model": {"primary": "probe/probe"},
            "workspace": "{folder}/workspace",
            "skipBootstrap": True,
        }
    },
    "tools": {"profile": "minimal"},
    "plugins": {"allow": ["memory-core"]},
    "update": {"checkOnStart": False},
    "logging": {"file": "{folder}/openclaw.log"},
}
_ENVIRONMENT: Final = {
    "OPENCLAW_STATE_DIR": "{folder}/state",
    "OPENCLAW_CONFIG_PATH": "{folder}/openclaw.json",
    "OPENCLAW_DISABLE_BONJOUR": "1",
    "OPENCLAW_NO_AUTO_UPDATE": "1",
    "OPENCLAW_SKIP_CHANNELS": "1",
    "OPENCLAW_SKIP_CRON": "1",
}


class OpenClawTarget:
    """OpenClaw from npm: its gateway with the OpenAI endpoints switched on."""

    versions = ("2026.9.6",)
    any_version = True

    def profile(self, version: str, say: Say) -> Profile:
        node = node_that(_is_supported, "OpenClaw", "24.16", say)
        home = npm_environment(f"openclaw-{version}", [f"openclaw@{version}"], say, node=node.parent)
        program = str(home / "node_modules" / "openclaw" / "openclaw.mjs")
        start = (str(node), program, "gateway", "run", "--port", "{port}", "--verbose")
        return Profile(
            name=f"openclaw {version}",
            header="x-openclaw-session-key",
            sessions_by_user=True,
            model="openclaw",
            slugs="none",
            principals={"alice": _KEY},
            options={"derivation": "none", "compaction": "in-place", "environment": "none", "tells": "nothing"},
            offers=frozenset({"responses", "streaming", "compression"}),
            single_user=True,
            limits=Limits(parallel=4, at_once=4, turn_seconds=100, responses=500, ids=30, disturbed=1, examples=2),
            summary="You are a context summarization assistant",
            process=Process(
                start,
                ready="/healthz",
                env=_ENVIRONMENT,
                seconds=180,
                files={"openclaw.json": json.dumps(_CONFIG, indent=1)},
                isolated=True,
                warm_up=120,
            ),
        )


def _is_supported(node: tuple[int, int]) -> bool:
    """True for 24.16 and later 24.x, and from 26.1."""
    return (24, 16) <= node < (25, 0) or node >= (26, 1)

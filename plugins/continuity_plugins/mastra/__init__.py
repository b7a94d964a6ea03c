"""Mastra: a TypeScript framework for agents. Its server has /v1/responses with stored responses and conversations, and no chat endpoint.

Mastra is a library: the server is a program of one's own, here `server.mjs` with one agent. `VERSION` is that of `@mastra/core`; the packages beside it have versions of their
own. A request names the agent (`agent_id`) and leaves out `model`, which would replace the agent's own model. `conversation_id` names a conversation that
POST /v1/conversations made. The model sees the last ten messages of a conversation, and no summary of the others.
"""

from pathlib import Path
from typing import Final

from continuity_conformance.plugin import Filling, Limits, Process, Profile, Say, npm_environment
from continuity_plugins.runtimes import node_that

_PACKAGES: Final = ("@mastra/hono@1.7.9", "@mastra/libsql@1.23.1", "@mastra/memory@1.31.0")
"""The packages that belong to the default version. They accept every @mastra/core from 1.68 on."""
_OTHERS: Final = ("@hono/node-server@1.19.19", "hono@4.13.18", "zod@4.6.7")
_SERVER: Final = Path(__file__).with_name("server.mjs")
_WINDOW: Final = Filling(turns=6)
"""The model sees the last ten messages (`lastMessages` of its memory, by default): five turns, of which one is the current one, and a half."""
_AGENT: Final = {"agent_id": "agent"}


class MastraTarget:
    """Mastra from npm: one agent with memory, behind /v1/responses and /v1/conversations."""

    versions = ("1.71.0",)
    any_version = True

    def profile(self, version: str, say: Say) -> Profile:
        node = node_that(_is_supported, "Mastra", "22.13", say)
        packages = (f"@mastra/core@{version}", *_PACKAGES, *_OTHERS)
        home = npm_environment(f"mastra-{version}", packages, say, node=node.parent)
        program = (str(node), str(_SERVER), str(home / "node_modules"))
        return Profile(
            name=f"mastra {version}",
            chat="none",
            slugs="made",
            body_fields=_AGENT,
            conversation_fields=_AGENT,
            body_names={"model": "none", "conversation": "conversation_id"},
            options={"derivation": "none", "compaction": "truncate", "environment": "none", "tells": "nothing"},
            offers=frozenset({"responses", "stored-responses", "conversations", "streaming", "compression"}),
            single_user=True,
            limits=Limits(parallel=6, at_once=8, turn_seconds=60),
            process=Process(
                (*program, "{port}", "{probe}", "{folder}/mastra.db"),
                base="/api",
                seconds=60,
                isolated=True,
                warm_up=60,
            ),
            evicts=False,
            filling=_WINDOW,
        )


def _is_supported(node: tuple[int, int]) -> bool:
    return node >= (22, 13)

"""hermes-agent: its real gateway, in any version on PyPI, with the probe as its model provider.

`hermes` is every version as it is shipped; `hermes-rotating` those that compress in place by default, told to rotate as before. Each version has an
environment of its own; each server a folder that holds its home, its databases, its temporary files and what its tools write.
"""

import secrets
from collections.abc import Sequence
from typing import Final

from continuity_conformance.plugin import (
    Build,
    Filling,
    Limits,
    Process,
    Profile,
    Say,
    ToolCall,
    UsageError,
    python_environment,
)
from continuity_plugins.hermes.controls import evicting, fault, fill, fork, link

VERSIONS: Final = (
    "0.13.0",
    "0.14.0",
    "0.15.0",
    "0.15.1",
    "0.15.2",
    "0.16.0",
    "0.17.0",
    "0.18.0",
    "0.18.1",
    "0.18.2",
    "0.19.0",
)
_ORIGIN: Final = "http://continuity.test"
_KEPT_RESPONSES: Final = 100
"""Fixed in the gateway: the least recently used goes first."""
_LIMITS: Final = Limits(
    parallel=4,
    at_once=10,
    turn_seconds=60,
    responses=_KEPT_RESPONSES,
    body=10_000_000,
    ids=40,
    servers=2,
    disturbed=4,
)
"""A turn takes a fifth of a second of one core, and a gateway uses no more than one. More than 10 at once it refuses by default (429)."""
_CONTEXT: Final = 131_072
_INPUT: Final = 17_600
"""Tokens of the context that are left for the input, of which 85 % may be used: prompt and tools take 2,500, and two turns of 5,000 still fit."""
_CONFIG: Final = """\
model: {{default: probe, provider: custom, base_url: "{{probe}}", api_key: probe, context_length: {context}, ollama_num_ctx: {context}{max_tokens}}}
platform_toolsets: {{api_server: [file]}}
terminal: {{backend: local, cwd: "{{folder}}/work"}}
compression: {{enabled: true, threshold: 0.5, protect_first_n: 0, protect_last_n: 2{in_place}}}
auxiliary: {{title_generation: {{enabled: false}}, compression: {{context_length: {context}}}}}
security: {{tirith_enabled: false, allow_lazy_installs: false}}
gateway: {{api_server: {{max_concurrent_runs: 0}}}}
kanban: {{dispatch_in_gateway: false}}
logging: {{level: ERROR}}
"""
"""Without `ollama_num_ctx` every turn asks a model on loopback whether it is an Ollama, and without the summary's `context_length` every compression does; each
takes as long as a turn itself."""


class Release(Build):
    """What a version has that an older one has not."""

    @property
    def has_sessions(self) -> bool:
        return self.number >= (0, 15)

    @property
    def compresses_in_place(self) -> bool:
        return self.number >= (0, 18)

    @property
    def drops_slugs(self) -> bool:
        """An eviction takes the slugs of the response along."""
        return self.number >= (0, 14)

    @property
    def counts_output(self) -> bool:
        """What is reserved for the output is taken off the context, so that few characters fill it."""
        return self.number >= (0, 18)


class HermesTarget:
    """hermes-agent, its gateway as it is shipped (`--target hermes==0.16.0`)."""

    versions: Sequence[str] = VERSIONS
    any_version = any_wheel = True

    def profile(self, version: str, say: Say) -> Profile:
        return hermes_profile(Release(version), say, rotates=not Release(version).compresses_in_place)


class HermesRotatingTarget:
    """hermes-agent with `compression.in_place: false`: the id rotates, as it did before 0.18."""

    versions: Sequence[str] = tuple(each for each in VERSIONS if Release(each).compresses_in_place)
    any_version = any_wheel = True

    def profile(self, version: str, say: Say) -> Profile:
        if not Release(version).compresses_in_place:
            raise UsageError(f"hermes-agent {version} rotates as it is.", do=f"Give hermes=={version}")
        return hermes_profile(Release(version), say, rotates=True)


def hermes_profile(release: Release, say: Say, *, rotates: bool) -> Profile:
    home = python_environment(f"hermes-{release.version}", [release.requirement("hermes-agent"), "aiohttp"], say)
    key = f"key-{secrets.token_hex(16)}"
    told = " rotating" if rotates and release.compresses_in_place else ""
    offers = {"responses", "streaming", "compression", "cors", "idempotency"}
    return Profile(
        name=f"hermes{told} {release.title}",
        principals={"alice": key},
        options={"compaction": "rotate" if rotates else "in-place"},
        offers=frozenset(offers | ({"sessions"} if release.has_sessions else set())),
        single_user=True,
        origin=_ORIGIN,
        limits=_LIMITS,
        process=Process(
            (str(home / "bin" / "hermes"), "gateway", "run"),
            env=_environment(key),
            files={"home/config.yaml": _config(release, rotates=rotates), "work/.keep": ""},
            seconds=60.0,
            isolated=True,
            warm_up=60.0,
            stop_seconds=15.0,
        ),
        legacy="{folder}/home/response_store.db",
        controls={
            "evict": evicting(slugs=release.drops_slugs),
            "fill": fill,
            "link": link,
            "fault": fault,
            **({"fork": fork} if release.has_sessions else {}),
        },
        filling=Filling(3, 20_000) if release.counts_output else Filling(5, 60_000),
        sessions="/api/sessions",
        session_field="session",
        session_fields={"parent_id": "parent_session_id", "created_at": "started_at"},
        summary="You are a summarization agent",
        writes=ToolCall("write_file", '{"path": "{name}", "content": "{content}"}'),
        reads=ToolCall("read_file", '{"path": "{name}"}'),
    )


def _environment(key: str) -> dict[str, str]:
    return {
        "HERMES_HOME": "{folder}/home",
        "API_SERVER_ENABLED": "true",
        "API_SERVER_KEY": key,
        "API_SERVER_HOST": "127.0.0.1",
        "API_SERVER_PORT": "{port}",
        "API_SERVER_CORS_ORIGINS": _ORIGIN,
        "HERMES_SKIP_SSL_GUARD": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _config(release: Release, *, rotates: bool) -> str:
    in_place = ", in_place: false" if rotates and release.compresses_in_place else ""
    max_tokens = f", max_tokens: {_CONTEXT - _INPUT}" if release.counts_output else ""
    return _CONFIG.format(context=_CONTEXT, max_tokens=max_tokens, in_place=in_place)

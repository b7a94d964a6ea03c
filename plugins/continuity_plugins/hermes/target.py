"""hermes-agent: its real gateway, in any version on PyPI, with the probe as its model provider.

`hermes` is any version with its default settings. `hermes-rotating` is a version that compresses in place by default, configured to rotate as older
versions do. Each version has its own environment. Each server has its own folder for its home, databases, temporary files and the files of its tools.
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
from continuity_plugins.hermes.controls import evict_control, fault, fill, fork, link

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
"""The size of the gateway's response cache, which cannot be configured. It evicts the least recently used response."""
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
"""A turn takes 0.2 s of one core, and a gateway uses only one core. By default it refuses more than 10 turns at once (429)."""
_CONTEXT: Final = 131_072
_INPUT: Final = 17_600
"""The tokens of the context that are for the input; 85 % of them may be used. Prompt and tools take 2,500, so two turns of 5,000 fit."""
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
"""Without `ollama_num_ctx`, every turn asks a model on loopback whether it is Ollama; without the `context_length` of `compression`, every compression does.
Each of these requests takes as long as a turn."""


class HermesBuild(Build):
    """A version of hermes-agent, and which features it has."""

    @property
    def has_sessions(self) -> bool:
        return self.number >= (0, 15)

    @property
    def compresses_in_place(self) -> bool:
        return self.number >= (0, 18)

    @property
    def drops_slugs(self) -> bool:
        """An eviction also deletes the slugs of the response."""
        return self.number >= (0, 14)

    @property
    def counts_output(self) -> bool:
        """The tokens reserved for the output are subtracted from the context, so that few characters fill it."""
        return self.number >= (0, 18)


class HermesTarget:
    """hermes-agent: its gateway with default settings (`--target hermes==0.16.0`)."""

    versions: Sequence[str] = VERSIONS
    any_version = any_wheel = any_checkout = True

    def profile(self, version: str, say: Say) -> Profile:
        build = HermesBuild(version)
        return hermes_profile(build, say, rotates=not build.compresses_in_place)


class HermesRotatingTarget:
    """hermes-agent with `compression.in_place: false`: the session id rotates, as it did before 0.18."""

    versions: Sequence[str] = tuple(each for each in VERSIONS if HermesBuild(each).compresses_in_place)
    any_version = any_wheel = any_checkout = True

    def profile(self, version: str, say: Say) -> Profile:
        build = HermesBuild(version)
        if not build.compresses_in_place:
            raise UsageError(f"hermes-agent {version} always rotates.", do=f"Give hermes=={version}")
        return hermes_profile(build, say, rotates=True)


def hermes_profile(build: HermesBuild, say: Say, *, rotates: bool) -> Profile:
    home = python_environment(f"hermes-{build.version}", [build.requirement("hermes-agent"), "aiohttp"], say)
    key = f"key-{secrets.token_hex(16)}"
    rotating = " rotating" if rotates and build.compresses_in_place else ""
    offers = {"responses", "stored-responses", "streaming", "compression", "cors", "idempotency"}
    return Profile(
        name=f"hermes{rotating} {build.title}",
        principals={"alice": key},
        options={"compaction": "rotate" if rotates else "in-place"},
        offers=frozenset(offers | ({"sessions"} if build.has_sessions else set())),
        single_user=True,
        origin=_ORIGIN,
        limits=_LIMITS,
        process=Process(
            (str(home / "bin" / "hermes"), "gateway", "run"),
            env=_environment(key),
            files={"home/config.yaml": _config(build, rotates=rotates), "work/.keep": ""},
            seconds=60.0,
            isolated=True,
            warm_up=60.0,
            stop_seconds=15.0,
        ),
        legacy="{folder}/home/response_store.db",
        controls={
            "evict": evict_control(slugs=build.drops_slugs),
            "fill": fill,
            "link": link,
            "fault": fault,
            **({"fork": fork} if build.has_sessions else {}),
        },
        filling=Filling(3, 20_000) if build.counts_output else Filling(5, 60_000),
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
        "HERMES_GATEWAY_MAX_STARTS": "0",  # else 0.19.0 waits 10 s, 20 s … up to 5 min before the sixth start in two minutes
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _config(build: HermesBuild, *, rotates: bool) -> str:
    in_place = ", in_place: false" if rotates and build.compresses_in_place else ""
    max_tokens = f", max_tokens: {_CONTEXT - _INPUT}" if build.counts_output else ""
    return _CONFIG.format(context=_CONTEXT, max_tokens=max_tokens, in_place=in_place)

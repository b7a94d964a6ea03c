"""azure-ai-agentserver-responses: /v1/responses with slugs and chains, and neither chat, keys nor compression.

It is a library, so the agent behind it is ours (`agent.py`). A client names a conversation by `conversation` or `previous_response_id`. No answer tells a
session: the header `x-agent-session-id` names an execution environment, and differs between the first and the second turn of a chain. People are named by
`x-agent-user-id`, which Microsoft's platform sets in front of the server.
"""

from pathlib import Path
from typing import Final

from continuity_conformance.plugin import (
    Build,
    Limits,
    Process,
    Profile,
    Say,
    python_environment,
)

_AGENT: Final = Path(__file__).with_name("agent.py")
_USER: Final = "x-agent-user-id"
_ENVIRONMENT: Final = {
    "AGENTSERVER_STATE_ROOT": "{folder}/state",
    "MODEL_URL": "{probe}",
    "PORT": "{port}",
    "OTEL_SDK_DISABLED": "true",
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""Without `OTEL_SDK_DISABLED` it writes a record of every request to its output."""


class AzureAgentServerTarget:
    """azure-ai-agentserver-responses with a small agent: /v1/responses, slugs and chains."""

    versions = ("2.3.0",)
    any_version = any_wheel = any_checkout = True

    def profile(self, version: str, say: Say) -> Profile:
        build = Build(version)
        library = build.requirement("azure-ai-agentserver-responses")
        home = python_environment(f"azure-agentserver-{build.version}", [library, "httpx"], say)
        return Profile(
            name=f"azure-agentserver {build.title}",
            chat="none",
            model="probe",
            identities={name: {_USER: name} for name in ("alice", "bob")},
            options={"derivation": "none", "compaction": "in-place", "environment": "none", "tells": "nothing"},
            offers=frozenset({"responses", "stored-responses", "streaming"}),
            evicts=False,
            limits=Limits(parallel=4, at_once=6, turn_seconds=60),
            process=Process(
                (str(home / "bin" / "python"), str(_AGENT)),
                ready="/readiness",
                env=_ENVIRONMENT,
                seconds=90,
                isolated=True,
                warm_up=60,
            ),
        )

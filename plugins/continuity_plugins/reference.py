"""The bundled target: the reference server with every control, two principals and the probe model."""

import os
import secrets
import sys
from collections.abc import Mapping

from continuity_conformance.plugin import Limits, Process, Profile, Say, ToolCall

ORIGIN = "http://continuity.test"
_RESPONSES = 40
"""The size of the response cache of a server that plays one scenario at a time. Small, so that it fills quickly."""
_SECOND_HEADER = "X-Session-Id"
"""A header that several clients send; the server takes it where its own is absent."""
_BODY = 1_000_000
"""The largest request body in bytes. Small, so that a larger one is sent quickly."""
ON_SQLITE = ("continuity_server", "--port={port}", "--db={folder}/continuity.db")
"""The module of the bundled server, and where it keeps its data."""
_PRELOAD = ("continuity_server.server", "continuity_server.defects")
_ENVIRONMENT = {"SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": os.devnull}
"""Its only client connection is to the probe, without TLS. To read the system's certificates would take a sixth of its start."""


class ReferenceTarget:
    """The bundled server, with every control and two keys.

    `continuity check` without a target tests it. The variable `CONTINUITY_REFERENCE` adds arguments of `continuity serve`.
    """

    versions: tuple[str, ...] = ()

    def profile(self, version: str, say: Say) -> Profile:  # noqa: ARG002 - there is one version, and it is installed
        return reference_profile(tuple(os.environ.get("CONTINUITY_REFERENCE", "").split()))


def reference_profile(
    extra: tuple[str, ...] = (), options: Mapping[str, str] | None = None, program: tuple[str, ...] = ON_SQLITE
) -> Profile:
    """The profile of the bundled server. `extra`: more arguments of the server, such as `--defect=NAME`; `program`: how it is started."""
    keys = {name: f"key-{secrets.token_hex(16)}" for name in ("alice", "bob")}
    token = secrets.token_hex(16)
    more = (*(f"--option={name}={value}" for name, value in (options or {}).items()), *extra)
    server = (
        sys.executable,
        "-m",
        *program,
        "--model={probe}",
        f"--max-body={_BODY}",
        f"--header={_SECOND_HEADER}",
        "--option=environment=shared",
    )
    start = (*server, f"--cors={ORIGIN}")
    # By the environment, since everybody on the machine sees the arguments of a process.
    secret = {
        "CONTINUITY_KEYS": "\n".join(f"{name}={key}" for name, key in keys.items()),
        "CONTINUITY_CONTROLS": token,
    }
    return Profile(
        name="reference",
        principals=keys,
        options=dict(options or {}),
        process=Process(
            (*start, *more),
            env={**_ENVIRONMENT, **secret},
            alone=(f"--max-responses={_RESPONSES}",),
            keyless=(*server, "--public", *more),
            keyless_env=_ENVIRONMENT,
            single_user=(*start, *more),
            single_user_env=_ENVIRONMENT,
            preload=_PRELOAD,
        ),
        # The only release there is takes over its own data.
        previous=Process(start, env={**_ENVIRONMENT, **secret}, preload=_PRELOAD),
        token=token,
        origin=ORIGIN,
        limits=Limits(parallel=32, responses=_RESPONSES, body=_BODY, disturbed=8),
        legacy="{folder}/continuity.db",
        writes=ToolCall("workspace", '{"action": "write", "name": "{name}", "text": "{content}"}'),
        reads=ToolCall("workspace", '{"action": "read", "name": "{name}"}'),
    )

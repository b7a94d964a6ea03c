"""A server without keys: the target itself, or another process of it that the kit starts (ISOLATE-02)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from continuity_conformance.core.failure import Untested
from continuity_conformance.http.messages import dig
from continuity_conformance.scenario.context import Context
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.interventions import made_step
from continuity_conformance.scenario.request_builder import plain_request
from continuity_conformance.target.controls import Controls
from continuity_conformance.target.server import Server


@asynccontextmanager
async def without_a_key(dialogue: Dialogue) -> AsyncIterator[None]:
    """Move the dialogue to a server that has no keys, and back afterwards."""
    context = dialogue.context
    if not context.target.profile.principals:
        yield
        return
    assert context.server.started is not None, "a condition of the checks"
    process = context.server.started.without_keys()
    dialogue.record.log.intervention(
        "", "start the same target with no key configured", f"another process, at {process.url}"
    )
    try:
        await process.start()
        dialogue.move_to(_moved(context, Server(process.url, context.server.profile, process)))
        await _must_serve_several_users(dialogue)
        yield
    finally:
        dialogue.move_to(context)
        await process.stop()


def _moved(context: Context, server: Server) -> Context:
    controls = Controls(server, context.transport, has_api=False)
    return replace(context, server=server, controls=controls)


async def _must_serve_several_users(dialogue: Dialogue) -> None:
    request = plain_request(
        dialogue.context, dialogue.variables, made_step("get", {"path": "/v1/capabilities", "as": "nobody"})
    )
    answer = await dialogue.context.transport.send(request)
    if dig(answer.body, "continuity", "single_user") is True:
        raise Untested(
            "the server without a key declares a single user: process.keyless must start one for several users"
        )

"""A target with no key configured: the one that is being tested, or another one that the kit starts for it (ISOLATE-02)."""

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
    """The dialogue goes on at a server that has no keys, and comes back."""
    context = dialogue.context
    if not context.target.profile.principals:
        yield
        return
    if (
        context.server.started is None
        or not context.server.profile.process
        or not context.server.profile.process.keyless
    ):
        raise Untested("no command that starts the target without a key: add process.keyless to the profile")
    process = context.server.started.without_keys()
    dialogue.record.log.intervention(
        "", "start the same target with no key configured", f"another process, at {process.url}"
    )
    try:
        await process.start()
        dialogue.move_to(_at(context, Server(process.url, context.server.profile, process)))
        await _must_be_for_several(dialogue)
        yield
    finally:
        dialogue.move_to(context)
        await process.stop()


def _at(context: Context, server: Server) -> Context:
    controls = Controls(server, context.transport, has_api=False)
    return replace(context, server=server, controls=controls)


async def _must_be_for_several(dialogue: Dialogue) -> None:
    request = plain_request(
        dialogue.context, dialogue.variables, made_step("get", {"path": "/v1/capabilities", "as": "nobody"})
    )
    answer = await dialogue.context.transport.send(request)
    if dig(answer.body, "continuity", "single_user") is True:
        raise Untested(
            "the server without a key declares that it is for one person: process.keyless starts one for several"
        )

"""A server without keys, for several people or for one: the target itself, or another process of it that the kit starts."""

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
async def without_a_key(dialogue: Dialogue, *, single_user: bool = False) -> AsyncIterator[None]:
    """Move the dialogue to a server that has no keys, and back afterwards."""
    context = dialogue.context
    if not context.target.profile.principals:
        yield
        return
    assert context.server.started is not None, "a condition of the checks"
    process = context.server.started.without_keys(single_user=single_user)
    dialogue.record.log.intervention(
        "", "start the same target with no key configured", f"another process, at {process.url}"
    )
    try:
        await process.start()
        dialogue.move_to(_moved(context, Server(process.url, context.server.profile, process)))
        await _must_serve(dialogue, single_user=single_user)
        yield
    finally:
        dialogue.move_to(context)
        await process.stop()


def _moved(context: Context, server: Server) -> Context:
    controls = Controls(server, context.transport, has_api=False)
    return replace(context, server=server, controls=controls)


async def _must_serve(dialogue: Dialogue, *, single_user: bool) -> None:
    """Raise Untested if the process declares other users than those that it was started for."""
    request = plain_request(
        dialogue.context, dialogue.variables, made_step("get", {"path": "/v1/capabilities", "as": "nobody"})
    )
    answer = await dialogue.context.transport.send(request)
    declared = dig(answer.body, "continuity", "single_user")
    if declared is (not single_user):
        wanted, other = ("a single user", "several users") if single_user else ("several users", "a single user")
        setting = "single_user" if single_user else "keyless"
        raise Untested(f"the server without a key declares {other}: process.{setting} must start one for {wanted}")

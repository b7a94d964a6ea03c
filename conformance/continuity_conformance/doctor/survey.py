"""The survey of a server: from its address to what a run could test.

Each step adds to the findings. An error ends the survey; it is kept together with the findings of the steps before.
"""

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Final

from continuity_conformance.core.errors import ContinuityError, UnreachableError
from continuity_conformance.doctor import address, controls, inventory
from continuity_conformance.doctor.cleanup import clean_up, session_paths
from continuity_conformance.doctor.dry_run import DryRun
from continuity_conformance.doctor.findings import Findings, Topic
from continuity_conformance.doctor.first_turns import another_header, first_turns
from continuity_conformance.doctor.recorder import Recorder
from continuity_conformance.doctor.state import SurveyState
from continuity_conformance.http.brief import short_text
from continuity_conformance.http.connect import must_answer, other_than_http
from continuity_conformance.http.messages import Answer, Request
from continuity_conformance.http.tls import trust
from continuity_conformance.probe.client import RemoteProbe
from continuity_conformance.probe.server import Probe, listening
from continuity_conformance.run.applicability import forecast
from continuity_conformance.run.calibrate import ask, assumed, capabilities, conclude
from continuity_conformance.run.first_answer import HEALTH, QUICK_SECONDS, silent
from continuity_conformance.scenario.context import Context, Observer
from continuity_conformance.target.profile import Profile
from continuity_conformance.target.server import Server, start_server
from continuity_spec import Requirement

_CONNECT_SECONDS: Final = 5.0
_GREETING_SECONDS: Final = 1.0


async def dry_run(url: str, profile: Profile, requirements: Sequence[Requirement]) -> list[Sequence[Request]]:
    """The requests that a survey could send: one dry run for each path where the server may have its sessions, and one for a server without chat."""
    states = [await survey(url, profile, requirements, dry_run_at=path) for path in (*session_paths(profile), "")]
    return [[request for request, _ in state.transport.exchanges] for state in states]


async def survey(
    url: str, profile: Profile, requirements: Sequence[Requirement], *, dry_run_at: str | None = None
) -> SurveyState:
    """Survey the server at an address; with an empty `url` the kit starts it as the profile says, and stops it at the end.

    `dry_run_at`: send nothing; the imagined server of the dry run has its sessions at this path, or no chat if it is empty.
    """
    began, seconds, trusted = time.monotonic(), profile.limits.turn_seconds, trust(profile.ca)

    def recorder(timeout: float) -> Recorder:
        return DryRun(profile, dry_run_at) if dry_run_at is not None else Recorder(timeout, trusted)

    async with AsyncExitStack() as stack:
        transport = await stack.enter_async_context(recorder(seconds))
        state = SurveyState(Findings(url), profile, transport, dry_run=dry_run_at is not None)
        # The first requests are no turns, so a short timeout is enough for them.
        quick = await stack.enter_async_context(recorder(min(seconds, QUICK_SECONDS)))
        try:
            observer = await (_observer(state, stack) if url or state.dry_run else _start(state, stack))
            await _connect(state)
            await _find_api(state, quick)
            await _examine(state, observer, requirements)
        except ContinuityError as error:
            state.findings.error = error
        state.transport.exchanges[:0] = quick.exchanges
        state.findings.requests = state.transport.sent + quick.sent
    state.findings.seconds = time.monotonic() - began
    return state


async def _examine(state: SurveyState, observer: Observer | None, requirements: Sequence[Requirement]) -> None:
    context = state.context(observer)
    try:
        declared = await capabilities(context)
        dialogue = await first_turns(state, context, declared)
        await inventory.auth(state, context)
        await conclude(dialogue, declared)
        dialogue = await another_header(state, dialogue, declared)
        await inventory.offers(state, dialogue, declared)
        await inventory.slugs(state, context)
        inventory.model(state, dialogue)
        await controls.try_control_api(state, context, declared)
        controls.list_controls(state, context, requirements)
        state.findings.target = context.target
        state.findings.prospects = [(each, *forecast(context, each)) for each in requirements]
    finally:
        await _clean_up(state, context)


async def _start(state: SurveyState, stack: AsyncExitStack) -> Observer:
    """Start the target with the probe as its model."""
    probe = Probe(state.profile.summary)
    server = await start_server(state.profile, await stack.enter_async_context(listening(probe)))
    stack.push_async_callback(server.stop)
    assert server.started is not None, "it was started here"
    state.process, state.findings.url = server.started, server.url
    state.add(Topic.REACH, f"the kit started it; it was ready after {server.started.start_seconds:.1f} s")
    return probe


async def _connect(state: SurveyState) -> None:
    if state.dry_run:
        return
    reached = await must_answer(state.findings.url, state.profile.ca, _CONNECT_SECONDS)
    tls = f", {reached.tls} with a trusted certificate" if reached.tls else ""
    ip = f" ({reached.address})" if reached.address != reached.host else ""
    milliseconds = f"{reached.seconds * 1000:.0f} ms"
    state.add(Topic.REACH, f"{reached.host}{ip} port {reached.port} accepts connections in {milliseconds}{tls}")


async def _find_api(state: SurveyState, quick: Recorder) -> None:
    """Ask for the models: this costs nothing, and nearly every OpenAI-compatible server lists them. If there are none, try other addresses."""
    context = replace(state.context(), transport=quick)
    answer = await ask(context, "GET", address.MODELS)
    await _require_http(state, answer, context)
    if not answer.timed_out and not address.looks_compatible(answer):
        answer = await _try_other_addresses(state, context, answer)
    names = address.model_names(answer)
    if names and state.profile.model not in names:
        more = f", and {len(names) - 1} more" if names[1:] else ""
        state.profile = replace(state.profile, model=names[0])
        state.add(Topic.API, f"OpenAI-compatible; it lists the model {names[0]}, which the doctor uses{more}")
    elif names:
        state.add(Topic.API, f"OpenAI-compatible; it lists the model {state.profile.model}")
    elif address.looks_compatible(answer):
        state.add(Topic.API, f"probably OpenAI-compatible: GET {address.MODELS} requires a key ({answer.status})")
    else:
        state.add(Topic.API, f"GET {address.MODELS} returns no list of models: {short_text(answer)}")


async def _require_http(state: SurveyState, answer: Answer, context: Context) -> None:
    """Raise UnreachableError unless it speaks HTTP. A server whose list of models is slow may answer something else in time."""
    if answer.status or state.dry_run:
        return
    where = state.findings.url
    if answer.timed_out:
        if (await ask(context, "GET", HEALTH)).timed_out:
            raise silent(where, answer.error)
        return
    problem = await other_than_http(where, _GREETING_SECONDS)
    raise UnreachableError(f"Something listens at this address, but {problem}.", where=where, do="Check the address.")


async def _try_other_addresses(state: SurveyState, context: Context, answer: Answer) -> Answer:
    """Look for the API at other addresses of the host. They may belong to other applications, so no key and no header field is sent to them."""
    without_secrets = replace(state.profile, principals={}, headers={})
    for url in address.other_addresses(state.findings.url):
        other = replace(context, server=Server(url, without_secrets), target=assumed(without_secrets))
        other_answer = await ask(other, "GET", address.MODELS)
        if address.looks_compatible(other_answer):
            _require_no_secrets(state, url)
            short = short_text(answer)
            state.add(Topic.API, f"not at {state.findings.url}/v1 ({short}), but at {url}/v1")
            state.findings.url = url
            return other_answer
    return answer


def _require_no_secrets(state: SurveyState, url: str) -> None:
    """Continue at another address only if there is no key that would be sent to it."""
    if not state.profile.secrets:
        return
    raise UnreachableError(
        f"There is no OpenAI-compatible server at this address, but there may be one at {url}, where your key was not sent.",
        where=state.findings.url,
        do=f"If your key is for that address, run: continuity doctor {url}",
    )


async def _observer(state: SurveyState, stack: AsyncExitStack) -> Observer | None:
    if not state.profile.probe:
        return None
    if state.dry_run:
        return Probe()
    return await stack.enter_async_context(RemoteProbe(state.profile.probe, state.profile.summary))


async def _clean_up(state: SurveyState, context: Context) -> None:
    if state.process is not None:
        return  # its data are in a folder that is deleted when it stops
    result = await clean_up(context, list(state.transport.exchanges))
    state.findings.left = [f"{item.kind} {item.id}" for item in result.left]
    if result.removed:
        state.add(Topic.CLEANED, f"deleted: {_counts([item.kind for item in result.removed])}")
    if result.left:
        kinds = _counts([item.kind for item in result.left])
        state.add(Topic.CLEANED, f"LEFT BEHIND, because the server has no way to delete them: {kinds}")


def _counts(kinds: Sequence[str]) -> str:
    return ", ".join(
        f"{kinds.count(kind)} {kind}{'s' if kinds.count(kind) > 1 else ''}" for kind in dict.fromkeys(kinds)
    )

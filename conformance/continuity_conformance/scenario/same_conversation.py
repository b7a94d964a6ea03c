"""Which turns of a scenario belong to one conversation: by session, slug, response, or the history in the body."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from continuity_conformance.core.failure import Unmet, Untested
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.record import Record
from continuity_conformance.scenario.request_builder import principal_of
from continuity_spec import Step

_NAMES: Final = ("session", "conversation")


def last_turn(record: Record, step: Step) -> Exchange | None:
    """The last turn of the conversation that a step continues."""
    turns = [past for past in reversed(record.exchanges) if past.label and past.principal == principal_of(step)]
    return next((past for past in turns if _continues(record, step, past)), None)


async def turns_before(record: Record, step: Step) -> frozenset[str]:
    """The turns that the model saw in the last turn of the conversation that a step continues, as labels."""
    past = last_turn(record, step)
    if past is not None and past.answer.accepted:
        with suppress(Unmet, Untested):
            await record.view(past)
    return frozenset(past.seen or ()) if past is not None else frozenset()


def same_names(step: Step, other: Step) -> bool:
    """Whether two steps name their conversation by the same session or slug."""
    named = [(step.params.get(name), other.params.get(name)) for name in _NAMES]
    return principal_of(step) == principal_of(other) and any(one is not None and one == two for one, two in named)


def _continues(record: Record, step: Step, past: Exchange) -> bool:
    params, header = step.params, record.context.target.header
    if "session" in params:
        session = record.variables.text(params["session"], "session", principal_of(step))
        sent = (value for name, value in past.request.headers if name == header)
        return session in {*past.answer.fields(header), *sent}
    if "conversation" in params:
        return past.step.params.get("conversation") == params["conversation"]
    if "previous_response_id" in params:
        named = record.variables.known(str(params["previous_response_id"]))
        return past.reading is not None and past.reading.id == named
    history: Sequence[str] = params.get("history", ())  # type: ignore[assignment]
    return bool(history) and past.label == history[-1]

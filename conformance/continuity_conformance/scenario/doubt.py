"""Whether a failure may be the kit's fault, by what the kit did to the target at the time: load, or a connection that had been used before.

Such a scenario is played once more, alone and with fresh names, and the second result counts. No other failure is repeated: that would hide a server
that fails now and then.
"""

from enum import StrEnum
from typing import Final

from continuity_conformance.scenario.context import Context
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.record import Record

_TOO_MANY: Final = 429
_UNKNOWN: Final = frozenset({400, 404})


class Doubt(StrEnum):
    """Why a failure may be the kit's fault, as a transcript says it."""

    STALE = "a connection that had been used before was lost without one byte of an answer"
    SLOW = "an answer did not come in time, while other scenarios played"
    LIMITED = "the target answered 429, while other scenarios played"
    EVICTED = "a response was unknown after other scenarios had sent more turns than the target's cache holds"


def doubt(record: Record, turns_before: int, *, shared: bool) -> Doubt | None:
    """Why the failure of this scenario may be the kit's fault; None if it is the target's.

    `turns_before`: how many turns its server had got before it. `shared`: others played on the same server.
    """
    exchanges = [each for each in record.exchanges if each.step.expect.get("status") != "any"]
    if any(each.answer.stale for each in exchanges):
        return Doubt.STALE
    if any(each.answer.timed_out for each in exchanges):
        return Doubt.SLOW
    if shared and any(_limited(each) for each in exchanges):
        return Doubt.LIMITED
    if shared and _crowded(record.context, turns_before) and any(_unknown_response(record, each) for each in exchanges):
        return Doubt.EVICTED
    return None


def _crowded(context: Context, turns_before: int) -> bool:
    """Whether the turns since then may have filled the cache of the server. On some servers turns of chat are in it too."""
    return 0 < context.cache.size < context.turns_sent - turns_before


def _limited(exchange: Exchange) -> bool:
    return exchange.answer.status == _TOO_MANY and exchange.step.params.get("model") != "rate limited"


def _unknown_response(record: Record, exchange: Exchange) -> bool:
    """Whether the target does not know a response that it stored in this scenario."""
    if exchange.answer.status not in _UNKNOWN:
        return False
    named = {str(exchange.step.params.get(name)) for name in ("previous_response_id", "response")}
    ids = named | {str(record.variables.known(name)) for name in named}
    return any(each.reading is not None and each.reading.id in ids for each in record.exchanges)

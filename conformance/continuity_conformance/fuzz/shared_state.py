"""What the random checks of a run share: the budget, the names, and one campaign for all that ask about it.

Light on purpose: schemathesis takes a second to load, and only a run that plays CONTRACT pays for it.
"""

import asyncio
from typing import TYPE_CHECKING

from continuity_conformance.core.budget import Budget
from continuity_conformance.fuzz.names import Namespace
from continuity_conformance.fuzz.sync_client import Wire, in_thread
from continuity_conformance.scenario.context import Context

if TYPE_CHECKING:
    from continuity_conformance.fuzz.generated.campaign import Campaign


def shared_of(context: Context) -> "Shared":
    """The one of this context."""
    found = context.shared.setdefault("random", Shared(context, context.budget))
    assert isinstance(found, Shared)
    return found


class Shared:
    """One for each context. Checks that make up data play one after the other: they all want the same processor."""

    def __init__(self, context: Context, budget: Budget) -> None:
        self.budget = budget
        self.names = Namespace.of(context, budget.seed)
        self.turn = asyncio.Lock()
        self._context = context
        self._campaign: Campaign | None = None

    async def campaign(self) -> "Campaign":
        """The campaign, played by the first who asks."""
        async with self.turn:
            if self._campaign is None:
                self._campaign = await in_thread(self._context, self._play)
            return self._campaign

    def _play(self, wire: Wire) -> "Campaign":
        from continuity_conformance.fuzz.generated import campaign  # noqa: PLC0415 - a second of imports, in the thread

        return campaign.play(wire, self.names, self.budget)

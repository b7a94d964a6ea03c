"""What the random checks of a run share: the budget, the names, and one campaign of generated requests.

This module does not import schemathesis, which takes a second to load: only a run with CONTRACT checks needs it.
"""

import asyncio
from typing import TYPE_CHECKING

from continuity_conformance.core.budget import Budget
from continuity_conformance.fuzz.names import RunNames
from continuity_conformance.fuzz.sync_client import SyncClient, run_in_thread
from continuity_conformance.scenario.context import Context

if TYPE_CHECKING:
    from continuity_conformance.fuzz.generated.campaign import Campaign


def shared_state(context: Context) -> "SharedState":
    """Return the shared state of this context."""
    state = context.shared.setdefault("random", SharedState(context, context.budget))
    assert isinstance(state, SharedState)
    return state


class SharedState:
    """The state of one context. Checks that generate data hold `lock`: they all need the same processor."""

    def __init__(self, context: Context, budget: Budget) -> None:
        self.budget = budget
        self.names = RunNames.of(context, budget.seed)
        self.lock = asyncio.Lock()
        self._context = context
        self._campaign: Campaign | None = None

    async def campaign(self) -> "Campaign":
        """Return the campaign. The first caller runs it."""
        async with self.lock:
            if self._campaign is None:
                self._campaign = await run_in_thread(self._context, self._run_campaign)
            return self._campaign

    def _run_campaign(self, client: SyncClient) -> "Campaign":
        from continuity_conformance.fuzz.generated import campaign  # noqa: PLC0415 - schemathesis takes a second to load

        return campaign.run_campaign(client, self.names, self.budget)

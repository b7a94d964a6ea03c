"""What the random checks of a run share: the budget, the names, and one campaign of generated requests."""

import asyncio

from continuity_conformance.core.budget import Budget
from continuity_conformance.fuzz.generated.campaign import Campaign, run_campaign
from continuity_conformance.fuzz.names import RunNames
from continuity_conformance.fuzz.sync_client import SyncClient, run_in_thread
from continuity_conformance.scenario.context import Context


def shared_state(context: Context) -> "SharedState":
    """Return the shared state of this context."""
    state = context.shared.setdefault("random", SharedState(context, context.budget))
    assert isinstance(state, SharedState)
    return state


class SharedState:
    """The state of one context. Checks of properties hold `lock`, because hypothesis plays one at a time."""

    def __init__(self, context: Context, budget: Budget) -> None:
        self.budget = budget
        self.names = RunNames.of(context, budget.seed)
        self.lock = asyncio.Lock()
        self._running = asyncio.Lock()
        self._campaign: Campaign | None = None

    async def campaign(self, context: Context) -> Campaign:
        """Return the campaign. The first caller runs it, in its own context."""
        async with self._running:
            if self._campaign is None:
                self._campaign = await run_in_thread(context, self._run_campaign)
            return self._campaign

    def _run_campaign(self, client: SyncClient) -> Campaign:
        return run_campaign(client, self.names, self.budget)

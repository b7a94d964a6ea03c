"""Slots: each client, or each pair that shares one, has a conversation, and gets a new one when that is long enough."""

import asyncio
import itertools
import random
from collections.abc import Sequence
from typing import Final

from continuity_conformance.http.messages import dig
from continuity_conformance.scenario.context import Context
from continuity_conformance.scenario.request_builder import new_slug_request
from continuity_conformance.torture.conversation import Conversation, ConversationKind, new_name

_SHORTEST: Final = 6
_LONGEST: Final = 16
_SLUGS: Final = frozenset({ConversationKind.SLUG, ConversationKind.KEYED_SLUG, ConversationKind.SHARED_SLUG})


class Names:
    """New names of conversations. Each is used once for each principal, so that two principals have sessions of the same name."""

    def __init__(self, context: Context, principals: Sequence[str]) -> None:
        self._context = context
        self._principals = tuple(principals)
        self._unused: dict[str, list[str]] = {principal: [] for principal in principals}

    def take(self, principal: str) -> str:
        waiting = self._unused[principal]
        if waiting:
            return waiting.pop(0)
        name = new_name(self._context)
        for other in self._principals:
            if other != principal:
                self._unused[other].append(name)
        return name


class Slot:
    """The conversations of a client, one after the other. `all`: every one that there was."""

    def __init__(
        self,
        kinds: Sequence[ConversationKind],
        principal: str,
        names: Names,
        numbers: "itertools.count[int]",
        chance: random.Random,
    ) -> None:
        self._kinds = tuple(kinds)
        self._principal = principal
        self._names = names
        self._numbers = numbers
        self._chance = chance
        self._enough = 0
        self._making = asyncio.Lock()
        self._made: set[str] = set()
        self.all: list[Conversation] = []

    def current(self) -> Conversation:
        last = self.all[-1] if self.all else None
        if last is None or last.broken or last.stuck or last.is_lost_for_the_client or last.length >= self._enough:
            return self._new()
        return last

    def _new(self) -> Conversation:
        kind = self._chance.choice(self._kinds)
        name = self._names.take(self._principal)
        self.all.append(Conversation(kind, next(self._numbers), self._principal, name, self._chance))
        self._enough = self._chance.randint(_SHORTEST, _LONGEST)
        return self.all[-1]

    async def prepare(self, conversation: Conversation, context: Context) -> None:
        """Make the slug of a new conversation, on a target that accepts only slugs that it made."""
        if context.target.profile.slugs != "made" or conversation.kind not in _SLUGS or conversation.name in self._made:
            return
        async with self._making:
            if conversation.name not in self._made:
                answer = await context.transport.send(new_slug_request(context, self._principal))
                made = dig(answer.body, "id")
                if isinstance(made, str):
                    conversation.rename(made)
                    self._made.add(conversation.name)

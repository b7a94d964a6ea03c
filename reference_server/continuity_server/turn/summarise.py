"""Compression: the model summarises the earlier turns when the history is larger than the context, or when the control API asked for it."""

import logging
from dataclasses import dataclass

from continuity_server.model.types import Call, Model, ModelFailedError
from continuity_server.rules import Rules
from continuity_server.rules.compress import Covered
from continuity_server.rules.messages import Messages, is_system
from continuity_server.turn.types import Turn, TurnOutput, TurnRequest

logger = logging.getLogger("continuity.summarise")


@dataclass(frozen=True, slots=True)
class Compression:
    """The compressed history, and the user messages that its summary replaces."""

    messages: Messages
    covered: Covered


class Summariser:
    """Compresses histories."""

    def __init__(self, model: Model, rules: Rules, context: int) -> None:
        self._model = model
        self._rules = rules
        self._context = context

    async def compress(self, turn: Turn, output: TurnOutput) -> Compression | None:
        """COMPRESS-12: None if nothing is to be compressed, or if the summary failed: then the turn is stored under the old id."""
        whole = [*turn.input.before, *turn.input.new, *output.messages]
        if not self._rules.compression_due(turn.destination.session, whole, self._context):
            return None
        start = self._rules.turn_start(whole)
        before, newest = whole[:start], whole[start:]
        conversation = [message for message in before if not is_system(message)]
        if not conversation:
            return None
        messages = self._rules.compacted(before, await self._summary(turn.request, conversation), newest)
        covered = (turn.input.covered or Covered()).and_also(self._rules.user_texts(conversation))
        return Compression(messages, covered) if messages is not None else None

    async def _summary(self, request: TurnRequest, conversation: Messages) -> str:
        """Return the summary; an empty text if the model failed."""
        messages = self._rules.summary_request(self._rules.paired(conversation))
        try:
            return (await self._model.ask(Call(request.model, messages))).text
        except ModelFailedError as error:
            logger.warning("the history was not compressed: %s", error)
            return ""

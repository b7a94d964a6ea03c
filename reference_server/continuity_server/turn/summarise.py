"""Compression: the earlier turns are summarised by the model when the history has outgrown the context, or a control asked for it."""

import logging
from dataclasses import dataclass

from continuity_server.model.types import Call, Model, ModelFailedError
from continuity_server.rules import Rules
from continuity_server.rules.compress import Covered
from continuity_server.rules.messages import Messages, is_system
from continuity_server.turn.types import Destination, TurnInput, TurnOutput, TurnRequest

logger = logging.getLogger("continuity.compress")


@dataclass(frozen=True, slots=True)
class Compression:
    """The compressed history, and which user messages its summary stands for."""

    messages: Messages
    covered: Covered


class Summariser:
    """Decides and summarises."""

    def __init__(self, model: Model, rules: Rules, context: int) -> None:
        self._model = model
        self._rules = rules
        self._context = context

    async def compress(
        self, ask: TurnRequest, place: Destination, view: TurnInput, made: TurnOutput
    ) -> Compression | None:
        """COMPRESS-12: where the summary fails, the turn is stored under the old id and nothing else changes."""
        whole = [*view.before, *view.new, *made.messages]
        start = self._rules.turn_start(whole)
        before, turn = whole[:start], whole[start:]
        conversation = [message for message in before if not is_system(message)]
        if not conversation or not self._rules.compression_due(place.session, whole, self._context):
            return None
        summary = await self._summary(ask, conversation)
        covered = (view.covered or Covered()).and_also(self._rules.user_texts(conversation))
        messages = self._rules.compacted(before, summary, turn) if summary else self._rules.unsummarised(before, turn)
        return Compression(messages, covered) if messages is not None else None

    async def _summary(self, ask: TurnRequest, conversation: Messages) -> str:
        request = self._rules.summary_request(self._rules.paired(conversation))
        try:
            return (await self._model.ask(Call(ask.model, request))).text
        except ModelFailedError as error:
            logger.warning("the history was not compressed: %s", error)
            return ""

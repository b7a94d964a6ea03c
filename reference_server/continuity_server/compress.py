"""Compression: the earlier turns are summarised by the model when the history has outgrown the context, or a control asked for it."""

import logging
from dataclasses import dataclass

from continuity_server.continuity import Rules
from continuity_server.history import Messages, is_system
from continuity_server.lineage import Covered
from continuity_server.model import Call, Model, ModelFailedError
from continuity_server.turn import Ask, Made, Place, View

logger = logging.getLogger("continuity.compress")


@dataclass(frozen=True, slots=True)
class Compression:
    """The compressed history, and which user messages its summary stands for."""

    messages: Messages
    covered: Covered


class Compressor:
    """Decides and summarises."""

    def __init__(self, model: Model, rules: Rules, context: int) -> None:
        self._model = model
        self._rules = rules
        self._context = context

    async def compress(self, ask: Ask, place: Place, view: View, made: Made) -> Compression | None:
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

    async def _summary(self, ask: Ask, conversation: Messages) -> str:
        request = self._rules.summary_request(self._rules.paired(conversation))
        try:
            return (await self._model.ask(Call(ask.model, request))).text
        except ModelFailedError as error:
            logger.warning("the history was not compressed: %s", error)
            return ""

"""The probe model of a campaign. It keeps a call only until the client has looked at it, because a campaign makes more calls than fit into memory.

It also tells when it is asked and when it answers, so that the target can be killed in that moment.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from continuity_conformance.probe.marks import marks_in, newest_user_mark
from continuity_conformance.probe.reply import ModelCall, ModelReply
from continuity_conformance.probe.server import Probe
from continuity_conformance.torture.views import summaries_in, users_in

_KEPT: Final = 4096
"""More calls than clients can wait for at the same time."""


class CampaignProbe(Probe):
    """`asked`: how often the model was called for each turn. `on_reply`: what to do when it answers a turn, by mark. `on_summary`: when it answers with a summary."""

    def __init__(self, summary: str) -> None:
        super().__init__(summary)
        self._open: OrderedDict[int, ModelCall] = OrderedDict()
        self._covers: dict[int, frozenset[str]] = {}
        self.asked: Counter[str] = Counter()
        self.on_reply: dict[str, Callable[[], None]] = {}
        self.on_summary: Callable[[str], None] | None = None

    def record(
        self, messages: Sequence[Mapping[str, object]], tools: Sequence[object] = (), *, compacts: bool = False
    ) -> ModelCall:
        newest, summary = newest_user_mark(messages), compacts or self._summaries.asks(messages)
        last = any(seen.kind == "user" and seen.mark == newest for seen in marks_in(messages[-1:]))
        call = ModelCall(next(self._numbers), tuple(messages), newest, last, summary, tuple(tools))
        if summary:
            self._covers[call.number] = users_in(messages).union(*map(self.covered, summaries_in(messages)))
            return call
        self._open[call.number] = call
        self.asked[newest] += last
        while len(self._open) > _KEPT:
            self._open.popitem(last=False)
        return call

    async def reply(self, call: ModelCall) -> ModelReply:
        reply = await super().reply(call)
        if call.summary and self.on_summary is not None:
            self.on_summary(call.newest)
        elif (then := self.on_reply.pop(call.newest, None)) is not None:
            then()
        return reply

    def covered(self, summary: int) -> frozenset[str]:
        """The turns that a summary covers."""
        return self._covers.get(summary, frozenset())

    def take(self, number: int) -> ModelCall | None:
        """A call that is not a summary, which is then forgotten."""
        return self._open.pop(number, None)

    def forget(self, mark: str) -> None:
        """Forget how to answer a turn."""
        self._scripts.pop(mark, None)
        self._holds.pop(mark, None)
        self.on_reply.pop(mark, None)

    async def call(self, number: int) -> ModelCall | None:
        return self._open.get(number)

    @property
    def summaries(self) -> int:
        """How many summaries it was asked for."""
        return len(self._covers)

    def _summary_fails(self, call: ModelCall) -> bool:  # noqa: ARG002 - no summary fails in a campaign
        return False

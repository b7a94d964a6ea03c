"""STREAM: what the events of a streamed answer have in common, how they end, and what a streamed turn leaves. Pure: events in, events out."""

from collections.abc import Sequence
from typing import TypeVar

from continuity_server.rules.echo import Event
from continuity_server.rules.messages import Message, Messages

E = TypeVar("E")


class StreamRules:
    """The rules about streamed answers."""

    def stream_id(self, ident: str, event: str) -> str:  # noqa: ARG002 - the rule is that the event does not matter
        """STREAM-01: one id in all events, the one that the answer is stored under."""
        return ident

    def chat_end(self, events: Sequence[Event]) -> list[Event | None]:
        """COMPRESS-07, STREAM-02: everything is said before the end marker, which is None here."""
        return [*events, None]

    def response_end(self, event: E) -> list[E]:
        """STREAM-02: the last event is response.completed, or response.failed."""
        return [event]

    def failed_end(self, events: Sequence[E]) -> list[E]:
        """STREAM-02: a stream that fails after its first event says so, and ends like any other."""
        return list(events)

    def stored_answer(self, session: str, made: Sequence[Message], *, streamed: bool, gone: bool) -> Messages:  # noqa: ARG002 - the rule is that none of it matters
        """STREAM-03, -04: what was made is stored, whole; streamed or not, and whether or not the client was there to the end."""
        return list(made)

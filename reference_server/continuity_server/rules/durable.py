"""DURABLE: what is on disk at which moment of a turn. Pure: messages in, messages out."""

from collections.abc import Sequence

from continuity_server.rules.messages import Message, Messages


class DurableRules:
    """The rules about processes that end, in order or not."""

    def commits_at_once(self) -> bool:
        """DURABLE-02: a turn is on disk before it is acknowledged."""
        return True

    def begun(self, new: Sequence[Message]) -> Messages:  # noqa: ARG002 - nothing, whatever was said
        """DURABLE-03: nothing of a turn is stored before all of it is: killed in the middle, it is absent."""
        return []

    def resumed(self, stored: Sequence[Message]) -> Messages:  # noqa: ARG002 - nothing, whatever was left
        """DURABLE-03: a turn that was cut short is not run again unasked."""
        return []

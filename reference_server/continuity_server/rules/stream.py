"""STREAM: how a streamed chat completion ends. Pure: chunks in, events out."""

from collections.abc import Mapping
from typing import Any, Final

Event = tuple[str | None, dict[str, Any]]
"""The name of a server-sent event (None for a plain chunk) and its data."""

DONE: Final = None
"""The end marker of a chat stream, `data: [DONE]`."""


class StreamRules:
    """The rule about the end of a stream."""

    def chat_ending(
        self, finish: Mapping[str, Any], session: Mapping[str, Any], usage: Mapping[str, Any] | None
    ) -> list[Event | None]:
        """COMPRESS-07, ECHO-09, STREAM-02: the finish chunk carries `session`, then comes the usage, if the client asked for it, and the end marker is last."""
        last: list[Event] = [(None, {**finish, **session})]
        if usage is not None:
            last.append((None, dict(usage)))
        return [*last, DONE]

"""STREAM: how a streamed chat completion ends. Pure: chunks in, events out."""

from collections.abc import Mapping
from typing import Any, Final

from continuity_server.settings import Options

Event = tuple[str | None, dict[str, Any]]
"""The name of a server-sent event (None for a plain chunk) and its data."""

SESSION_EVENT: Final = "session"
"""The name of the event that tells the new id of a session."""
DONE: Final = None
"""The end marker of a chat stream, `data: [DONE]`."""


class StreamRules:
    """The rule about the end of a stream."""

    options: Options

    def chat_ending(
        self, finish: Mapping[str, Any], session: Mapping[str, Any], usage: Mapping[str, Any] | None
    ) -> list[Event | None]:
        """COMPRESS-07, ECHO-09, STREAM-02: the finish chunk carries `session`, then comes the usage, if the client asked for it, and the end marker is last."""
        last = self._announced(finish, session) or [(None, {**finish, **session})]
        if usage is not None:
            last.append((None, dict(usage)))
        return [*last, DONE]

    def _announced(self, finish: Mapping[str, Any], session: Mapping[str, Any]) -> list[Event]:
        """COMPRESS-07, -08: with announces=event a new id comes in a named event, which is a whole chunk, so that every client can read it."""
        rotated = (session.get("session") or {}).get("rotated_from") is not None
        if self.options.announces != "event" or not rotated:
            return []
        nothing = [{**choice, "finish_reason": None} for choice in finish["choices"]]
        return [(SESSION_EVENT, {**finish, "choices": nothing, **session}), (None, dict(finish))]

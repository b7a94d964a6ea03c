"""Server-sent events, decoded as the WHATWG HTML standard says.

https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation: lines end with CR, LF or CRLF, one leading byte order
mark is dropped, `data` lines of an event are joined by LF, an empty line ends the event, and an event that the end of the stream cuts off is dropped.
Bytes come in pieces of any size: a piece may end inside a character or between CR and LF.
"""

import codecs
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its data, the name from `event:` (empty where none was sent) and the last id that the stream named."""

    data: str
    name: str = ""
    id: str = ""


class EventStreamDecoder:
    """Turns the bytes of one stream into events."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._at_start = True
        self._after_cr = False
        self._line = ""
        self._data: list[str] = []
        self._name = ""
        self._id = ""

    def feed(self, piece: bytes) -> list[Event]:
        """The events that these bytes complete."""
        text = self._decode(piece)
        if self._at_start and text:
            text = text.removeprefix("\ufeff")
            self._at_start = False
        if self._after_cr and text:
            text = text.removeprefix("\n")
            self._after_cr = False
        self._after_cr = self._after_cr or text.endswith("\r")
        *lines, self._line = (self._line + text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        return [event for line in lines if (event := self._take(line)) is not None]

    def _take(self, line: str) -> Event | None:
        if not line:
            return self._dispatch()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        elif field == "id" and "\0" not in value:
            self._id = value
        return None

    def _dispatch(self) -> Event | None:
        """An empty line: an event without data is dropped, its name too."""
        event = Event("\n".join(self._data), self._name, self._id) if self._data else None
        self._data, self._name = [], ""
        return event

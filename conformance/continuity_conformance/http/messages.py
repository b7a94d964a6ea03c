"""A request as it is sent, with the key of a principal, and an answer as it came back. Nothing here opens a connection or knows a requirement."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final
from urllib.parse import urlsplit

from multidict import CIMultiDict

from continuity_conformance.http.sse import Event, EventStreamDecoder

BODY_AT_MOST: Final = 4 * 1024 * 1024
HEADERS_AT_MOST: Final = 64 * 1024
"""All header fields of an answer together. A server that sends more is not read any further."""
_KEPT_AT_MOST: Final = 64 * 1024
_KEPT_OF_TOO_MUCH: Final = 2_000
_TOO_LONG: Final = "the answer is longer than"
TIMED_OUT: Final = "no complete answer"
NO_UTF8: Final = "\udcff"
"""A byte that never occurs in UTF-8, as Python reads it."""
USER_AGENT: Final = "session-continuity-conformance/1.0"
EVENT_STREAM: Final = "text/event-stream"
_LAST_TYPES: Final = frozenset({"response.completed", "response.failed", "response.incomplete"})
_TOLD_FAILURE: Final = 500
_FAILURES: Final = frozenset({"response.failed", "error"})
"""The types of events that report a failure."""
_KEY: Final = "{key}"
_NEEDS_RAW_SOCKET: Final = re.compile(r"[\x00-\x1f\x7f\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class KeyField:
    """The header field for the key: its name, and its value with `{key}` as the placeholder."""

    name: str = "Authorization"
    value: str = f"Bearer {_KEY}"

    @classmethod
    def read(cls, line: str) -> "KeyField":
        """Parse a line such as `X-Api-Key: {key}`."""
        name, _, value = line.partition(":")
        return cls(name.strip(), value.strip())

    @property
    def usual(self) -> bool:
        """Whether this is what the OpenAI clients send."""
        return self == KeyField()

    def filled(self, key: str) -> tuple[str, str]:
        return self.name, self.value.replace(_KEY, key)


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it is sent. Header fields are pairs, so that one may be sent twice. A body of bytes goes as it is, any other as JSON.

    `made_of`: texts, and how often each comes, that make up a body which is too long to show; `key_as`: what stands in the field of the key, which is `{key}`
    there, and `key_in` that field (`curl.py`).
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: object = None
    hang_up: bool = False
    made_of: tuple[tuple[str, int], ...] = ()
    key_as: str = ""
    key_in: str = "Authorization"
    on_answer: Callable[[], None] | None = field(default=None, compare=False, repr=False)
    """Called as soon as the client has the whole answer: the last byte of a plain one, the end marker of a stream."""
    on_begin: Callable[[], None] | None = field(default=None, compare=False, repr=False)
    """Called as soon as the answer begins."""

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    @property
    def origin(self) -> str:
        return origin(self.url)

    @property
    def data(self) -> bytes | None:
        """The bytes of the body, or None where there is none."""
        if self.body is None or isinstance(self.body, bytes):
            return self.body
        return json.dumps(self.body, ensure_ascii=False).encode("utf-8", "surrogatepass")

    @property
    def fields(self) -> CIMultiDict[str]:
        """The header fields, with the content type of a JSON body; bytes say themselves what they are, or do not."""
        fields = CIMultiDict(self.headers)
        if self.body is not None and not isinstance(self.body, bytes):
            fields.setdefault("Content-Type", "application/json")
        return fields

    @property
    def needs_raw_socket(self) -> bool:
        """HTTP clients rightly refuse to send control characters, and bytes that are no UTF-8 (lone surrogates here)."""
        return any(_NEEDS_RAW_SOCKET.search(value) for _, value in self.headers)


@dataclass(frozen=True)
class Answer:
    """What came back. `status` 0: nothing did, and `error` says why. Many expectations ask the same of one answer, so it remembers what it derives.

    `events`: the data of each event of a stream, parsed where it is JSON, else text; `event_names`: what `event:` called each of them.
    """

    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    text: str = ""
    body: object = None
    events: tuple[object, ...] = ()
    event_names: tuple[str, ...] = ()
    streamed: bool = False
    error: str = ""
    started: float = 0.0
    seconds: float = 0.0
    stale: bool = False
    """The connection had been used before and was lost without one byte of an answer: the target may just have closed it as idle."""
    failed: bool = False
    """Whether the body of a turn's answer says that the turn failed (`status: failed`), whatever the HTTP status is."""

    @cached_property
    def _by_name(self) -> Mapping[str, list[str]]:
        fields = defaultdict[str, list[str]](list)
        for name, value in self.headers:
            fields[name.lower()].append(value)
        return fields

    def fields(self, name: str) -> list[str]:
        return list(self._by_name.get(name.lower(), ()))

    @property
    def timed_out(self) -> bool:
        return self.error.startswith(TIMED_OUT)

    @property
    def too_long(self) -> bool:
        return self.error.startswith(_TOO_LONG)

    @cached_property
    def content_type(self) -> str:
        return next(iter(self.fields("content-type")), "").partition(";")[0].strip().lower()

    @cached_property
    def failed_in_stream(self) -> bool:
        """After the first event a failure can only be told by an event."""
        return any(
            dig(event, "error") or dig(event, "type") in _FAILURES or dig(event, "response", "status") == "failed"
            for event in self.events
        )

    @property
    def outcome(self) -> int:
        """The status that counts: a failure that is told in a stream or in the body of a 2xx is a 5xx."""
        return _TOLD_FAILURE if self.failed_in_stream or self._failed_in_body else self.status

    @property
    def accepted(self) -> bool:
        return self._is_success and not self.error and not self.failed_in_stream and not self.failed

    @property
    def _failed_in_body(self) -> bool:
        return self._is_success and self.failed

    @property
    def _is_success(self) -> bool:
        return 200 <= self.status < 300  # noqa: PLR2004

    @property
    def refused(self) -> bool:
        return 400 <= self.status < 500 or self.status == 503  # noqa: PLR2004


def origin(url: str) -> str:
    """Scheme, host and port of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def decoded(head: Answer, raw: bytes, error: str = "") -> Answer:
    """The answer with its body: the events of a stream, or JSON, or text. `error` says what cut it short."""
    text = raw.decode("utf-8", "replace")
    kept = text[:_KEPT_AT_MOST]
    if head.content_type != EVENT_STREAM:
        return replace(head, text=kept, body=parse_json(text), error=error)
    events = EventStreamDecoder().feed(raw)
    names = tuple(event.name for event in events)
    return replace(head, text=kept, events=event_data(events), event_names=names, streamed=True, error=error)


def head_of(status: int, fields: Iterable[tuple[str, str]]) -> Answer:
    """An answer without its body. One with too many or too long header fields has an error, and only the first of them."""
    headers, size = tuple(fields), 0
    if sum(len(name) + len(value) for name, value in headers) <= HEADERS_AT_MOST:
        return Answer(status=status, headers=headers)
    kept: list[tuple[str, str]] = []
    for name, value in headers:
        size += len(name) + len(value)
        if size > _KEPT_OF_TOO_MUCH:
            break
        kept.append((name, value))
    return Answer(
        status=status, headers=tuple(kept), error=f"the header fields are longer than {HEADERS_AT_MOST} bytes"
    )


def overlong(head: Answer, raw: bytes | bytearray, limit: int) -> Answer:
    """An answer that is longer than the kit reads. Only its beginning is kept, as text."""
    text = bytes(raw[:_KEPT_OF_TOO_MUCH]).decode("utf-8", "replace")
    streamed = head.content_type == EVENT_STREAM
    return replace(head, text=text, streamed=streamed, error=f"{_TOO_LONG} {limit} bytes")


def is_end_marker(event: Event) -> bool:
    """Whether a stream has nothing more to say after this event."""
    return event.data == "[DONE]" or dig(parse_json(event.data), "type") in _LAST_TYPES


def event_data(events: Iterable[Event]) -> tuple[object, ...]:
    """The data of each event: parsed where it is JSON, else the text itself."""
    return tuple(event.data if (parsed := parse_json(event.data)) is None else parsed for event in events)


def parse_json(text: str) -> object:
    """The value of a JSON text; None where it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # also for a number of more digits than Python reads
        return None


def dig(value: object, *path: str | int) -> object:
    """The value at a path of keys and positions, or None where any of it is missing: an answer may have any shape."""
    for key in path:
        if isinstance(value, (dict, Mapping)) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(key, int) and isinstance(value, Sequence) and not isinstance(value, str):
            value = value[key] if -len(value) <= key < len(value) else None
        else:
            return None
    return value

"""Expectations on what an answer must not contain. Each one holds, or raises `Unmet`."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote

from continuity_conformance.core.failure import Unmet, Untested
from continuity_conformance.http.messages import dig
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.record import Record
from continuity_conformance.scenario.request_builder import WRONG_KEY

_LEAKS: Final[Mapping[str, re.Pattern[str]]] = {
    "a trace": re.compile(
        r"Traceback \(most recent|File \"[^\"]+\", line \d+|^\s*at .+[(:]\d+:\d+\)?$|\b\w+\.(py|js|ts|go|rs|rb|java|php):\d+|"
        r"goroutine \d+ \[|\bpanicked at\b",
        re.MULTILINE,
    ),
    "a path": re.compile(
        r"(?<![\w.:/])/(home|root|usr|var|tmp|opt|etc|srv|mnt|app|private|Users)/\w|\b[A-Z]:\\\w|site-packages|node_modules"
    ),
    "SQL": re.compile(
        r"\bSELECT\b.+\bFROM\b|\bINSERT\s+(OR\s+\w+\s+)?INTO\b|\bUPDATE\b.+\bSET\b|\bDELETE\s+FROM\b|SQLSTATE|"
        r"no such (table|column)|constraint failed|sqlite3?\.|psycopg|asyncpg|SQLAlchemy",
        re.DOTALL,
    ),
}
_ERRORS: Final = (("error",), ("response", "error"))
_SHORTEST: Final = 4
_A_RANDOM_WORD: Final = 12
"""Letters alone are a secret from this length on; shorter ones may be a word."""
_AROUND: Final = 60


async def envelope(_: Record, exchange: Exchange, __: Any) -> None:
    """An error is the OpenAI envelope."""
    if exchange.request.needs_raw_socket:
        raise Untested("where the HTTP parser itself refuses, the envelope is not required")
    answer = exchange.answer
    if not answer.streamed and not _is_envelope(answer.body):
        shown = f"{answer.content_type or 'no content type'}: {answer.text[:160]}"
        raise Unmet('{"error": {"message", "type", "param", "code"}}', shown)


async def discreet(record: Record, exchange: Exchange, _: Any) -> None:
    """An error shows no trace, path, SQL or key of the server."""
    answer = exchange.answer
    if any(_contains(answer.text, key) for key in (*record.context.target.profile.secrets, WRONG_KEY)):
        raise Unmet("an error without a key in it", "a key in it")
    leaks(_own_words(exchange))


def _contains(text: str, secret: str) -> bool:
    """Whether a text has this secret as a word of its own. One that may be a word of the language, such as a token "secret" for tests, proves nothing."""
    if secret.isalpha() and len(secret) < _A_RANDOM_WORD:
        return False
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(secret)}(?![A-Za-z0-9])", text) is not None


def _is_envelope(body: object) -> bool:
    error = dig(body, "error")
    return (
        isinstance(error, Mapping)
        and isinstance(error.get("message"), str)
        and isinstance(error.get("type"), str)
        and {"param", "code"} <= error.keys()
    )


def leaks(text: str) -> None:
    """Raise if a text shows internals of the server."""
    for what, pattern in _LEAKS.items():
        leak = pattern.search(text)
        if leak:
            shown = text[max(0, leak.start() - _AROUND) : leak.end() + _AROUND]
            raise Unmet(f"an error without {what} in it", f"… {shown} …")


def _own_words(exchange: Exchange) -> str:
    """The server's own words in its error messages, without what they repeat from the request."""
    answer, request = exchange.answer, exchange.request
    messages = [
        text for event in (answer.body, *answer.events) for path in _ERRORS for text in strings(dig(event, *path))
    ]
    text = "\n".join(messages if _is_envelope(answer.body) or answer.streamed else [answer.text])
    segments = request.path.split("/")
    sent = [*strings(request.body), *(value for _, value in request.headers), *segments, *map(unquote, segments)]
    for words in sorted(filter(lambda words: len(words) >= _SHORTEST, sent), key=len, reverse=True):
        text = text.replace(words, "…")
    return text


def strings(value: object) -> list[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        return [value]
    listed = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return [text for item in listed for text in strings(item)]


async def hides(record: Record, exchange: Exchange, wanted: Any) -> None:
    """The answer contains none of these: the value of a `$name`, or the text of a turn."""
    answer = exchange.answer
    everything = "\n".join([answer.text, *(f"{name}: {value}" for name, value in answer.headers)])
    for word in wanted:
        if _value(record, word) in everything:
            raise Unmet(f"nothing of {word}", f"… {_value(record, word)} … in {answer.status} {answer.text[:160]}")


def _value(record: Record, word: str) -> str:
    if not word.startswith("$"):
        return record.wording.mark(word)
    value = record.variables.known(word)
    if value is None:
        raise Untested(f"the value of {word} is not known")
    return str(value)


EXPECTATIONS: Final[Mapping[str, Callable[[Record, Exchange, Any], Awaitable[None]]]] = {
    word.__name__: word for word in (envelope, discreet, hides)
}

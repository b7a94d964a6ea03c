"""An exchange as a command that sends its request again.

The results.json may come from a stranger. Everything in it is quoted data: the command runs nothing of it, reads no file, and reads no variable but the
keys of `_KEY_VARIABLES` and TARGET. This module knows the JSON form of exchanges (`results.schema.json`) and nothing else.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, Final
from urllib.parse import unquote_to_bytes

HIDDEN: Final = "***"
"""What stands in evidence in place of a secret."""
_CUT: Final = re.compile(r"… \(\d+ more characters\)\Z")
"""How a text ends that was too long to be kept."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]|\\u[0-9a-f]{4}")
"""Control characters, as they are or as a report shows them."""
_PAIR: Final = 2
_HTTP: Final = re.compile(r"https?://[^/]")
_GLOB: Final = re.compile(r"[\[\]{}]")
"""What curl expands in an address unless it is told not to."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_FIELD: Final = re.compile(r"[A-Za-z0-9_-]+")
_KEY_VARIABLES: Final[Mapping[str, str]] = {"alice": "KEY", "bob": "BOB_KEY", "stranger": "STRANGER_KEY"}
"""The environment variable of each principal's key. A command names no other secret."""
_KEY_FIELDS: Final = frozenset({"x-api-key", "api-key"})
"""Fields other than Authorization that usually carry a key, without a scheme before it."""
_WITH_KEY: Final = "Bearer {key}"
_KEY_WORD: Final = re.compile(r"\{(key|cut|swapped)\}")
_KEYS: Final = {
    "key": '"${%s}"',
    "cut": '"${%s%%?}"',
    "swapped": '"$(printf %%s "$%s" | tr a-zA-Z A-Za-z)"',
}
"""What stands for a key in a shell: the key, all but its last letter, capitals for small letters."""

_UNSEEN: Final = frozenset({"sees", "recalls", "forgets", "summary", "system", "tools", "reads", "ran", "serial"})
"""Expectations about what the model saw: no answer shows it."""


def one_request(
    expectation: str, exchanges: Sequence[Mapping[str, Any]], interventions: Sequence[object], base: str = ""
) -> str | None:
    """The command where one request shows the failure, and None where more than that is needed."""
    shows = len(exchanges) == 1 and not interventions and expectation not in _UNSEEN
    return curl(exchanges[0], base) if shows else None


def curl(exchange: Mapping[str, Any], base: str = "") -> str | None:
    """The command; None where no command line can say it: a body that was cut, control characters, another protocol than HTTP.

    `base` is the beginning of an address that is taken from the environment, as TARGET.
    """
    request = exchange["request"]
    url = request["url"]
    if not _is_whole(request) or _CONTROL.search(url) or _CONTROL.search(request["method"]) or not _HTTP.match(url):
        return None
    fields = []
    for name, value in pairs(request["headers"]):
        if _CONTROL.search(value) or not _TOKEN.fullmatch(name):
            return None
        fields += [] if name.lower() == "user-agent" else [f"-H {_field(name, value, exchange)}"]
    method = shlex.quote(request["method"])
    command = ["curl -i -X", method, *fields, *_data(request), *_address(url, base)]
    return " ".join([*_maker(request.get("made_of")), *command])


def _data(request: Mapping[str, Any]) -> list[str]:
    """The body, byte by byte: `--data-raw` does not take `@` for a file. Without a Content-Type curl must not add its own."""
    made_of = request.get("made_of")
    if not request["body"] and made_of is None:
        return []
    announced = any(name.lower() == "content-type" for name, _ in pairs(request["headers"]))
    data = "--data-binary @-" if made_of is not None else f"--data-raw {shlex.quote(request['body'])}"
    return [*([] if announced else ["-H Content-Type:"]), data]


def _maker(made_of: object) -> list[str]:
    """A command that prints a body which no text can show, because it is too long or is no text."""
    if not isinstance(made_of, list):
        return []
    parts = [(unquote_to_bytes(str(text)), int(times)) for text, times in made_of]
    said = " + ".join(repr(part) if times == 1 else f"{part!r} * {times}" for part, times in parts)
    return ["python3 -c", shlex.quote(f"import sys; sys.stdout.buffer.write({said})"), "|"]


def _address(url: str, base: str) -> list[str]:
    """The address as one argument that is no option, and as one address: curl expands `[1-9]` and `{a,b}`."""
    quoted = f'"$TARGET"{shlex.quote(url.removeprefix(base))}' if base and url.startswith(base) else shlex.quote(url)
    return [*(["--globoff"] if _GLOB.search(url) else []), "--", quoted]


def pairs(headers: object) -> list[tuple[str, str]]:
    """Headers are an object, or a list of pairs where one comes twice."""
    if isinstance(headers, Mapping):
        headers = list(headers.items())
    found = headers if isinstance(headers, list | tuple) else ()
    return [(str(pair[0]), str(pair[1])) for pair in found if isinstance(pair, list | tuple) and len(pair) == _PAIR]


def _field(name: str, value: str, exchange: Mapping[str, Any]) -> str:
    if name.lower() == _key_in(exchange).lower():
        return _key_field(exchange)
    variable = _key_variable(exchange)
    if value == HIDDEN and name.lower() in _KEY_FIELDS and variable is not None:
        return f'{shlex.quote(f"{name}: ")}"${variable}"'
    return shlex.quote(f"{name}: {value}")


def _key_field(exchange: Mapping[str, Any]) -> str:
    name = _key_variable(exchange)
    if name is None:
        return shlex.quote(f"{_key_in(exchange)}: {HIDDEN}")
    sent = str(exchange["request"].get("key_as", _WITH_KEY))
    if sent == _WITH_KEY:
        return f'"{_key_in(exchange)}: Bearer ${name}"'
    # Every second one is a word for the key; what stands between them is data.
    pieces = _KEY_WORD.split(f"{_key_in(exchange)}: {sent}")
    shown = [
        _KEYS[piece] % name if odd else shlex.quote(piece)
        for odd, piece in zip(cycle((0, 1)), pieces, strict=False)
        if piece
    ]
    return "".join(shown)


def _key_variable(exchange: Mapping[str, Any]) -> str | None:
    """The environment variable of the principal's key; None for a principal that the kit does not have."""
    return _KEY_VARIABLES.get(str(exchange.get("principal", "alice")))


def _key_in(exchange: Mapping[str, Any]) -> str:
    """The field that the key is in. A report may come from anywhere: what is no name of a field is none."""
    name = str(exchange["request"].get("key_in", "Authorization"))
    return name if _FIELD.fullmatch(name) else "Authorization"


def _is_whole(request: Mapping[str, Any]) -> bool:
    """Whether the body that was sent is known to its end."""
    body = request["body"]
    return request.get("made_of") is not None or (isinstance(body, str) and _CUT.search(body) is None)

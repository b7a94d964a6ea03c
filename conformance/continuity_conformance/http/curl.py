"""An exchange as a command that sends its request again.

Whatever a server made up (an id, a path) is data to the shell: everything is quoted. What is secret comes from the environment. Knows the JSON form of
exchanges (`results.schema.json`) and nothing else. What a body is made of and how a key was changed are data there, too: no line of a report is ever run.
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
_NO_NAME: Final = re.compile(r"[^A-Z0-9_]")
_FIELD: Final = re.compile(r"[A-Za-z0-9_-]+")
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
    """The command; None where no command line can say it: a body that was cut, control characters in a header.

    `base` is the beginning of an address that is taken from the environment, as TARGET.
    """
    request = exchange["request"]
    if not _is_whole(request) or _CONTROL.search(request["url"]) or _CONTROL.search(request["method"]):
        return None
    fields = []
    for name, value in pairs(request["headers"]):
        if _CONTROL.search(name + value):
            return None
        fields += [] if name.lower() == "user-agent" else [f"-H {_field(name, value, exchange)}"]
    method = shlex.quote(request["method"])
    command = ["curl -i -X", method, *fields, *_data(request), _address(request["url"], base)]
    return " ".join([*_maker(request.get("made_of")), *command])


def _data(request: Mapping[str, Any]) -> list[str]:
    """The body, byte by byte; curl is kept from announcing a type that was not announced."""
    made_of = request.get("made_of")
    if not request["body"] and made_of is None:
        return []
    announced = any(name.lower() == "content-type" for name, _ in pairs(request["headers"]))
    data = "@-" if made_of is not None else shlex.quote(request["body"])
    return [*([] if announced else ["-H Content-Type:"]), f"--data-binary {data}"]


def _maker(made_of: object) -> list[str]:
    """A command that prints a body which no text can show, because it is too long or is no text."""
    if not isinstance(made_of, list):
        return []
    parts = [(unquote_to_bytes(str(text)), int(times)) for text, times in made_of]
    said = " + ".join(repr(part) if times == 1 else f"{part!r} * {times}" for part, times in parts)
    return ["python3 -c", shlex.quote(f"import sys; sys.stdout.buffer.write({said})"), "|"]


def _address(url: str, base: str) -> str:
    return f'"$TARGET"{shlex.quote(url.removeprefix(base))}' if base and url.startswith(base) else shlex.quote(url)


def key_name(principal: str) -> str:
    """The environment variable that a principal's key is taken from."""
    return "KEY" if principal == "alice" else f"{_NO_NAME.sub('_', principal.upper())}_KEY"


def pairs(headers: object) -> list[tuple[str, str]]:
    """Headers are an object, or a list of pairs where one comes twice."""
    if isinstance(headers, Mapping):
        headers = list(headers.items())
    found = headers if isinstance(headers, list | tuple) else ()
    return [(str(pair[0]), str(pair[1])) for pair in found if isinstance(pair, list | tuple) and len(pair) == _PAIR]


def _field(name: str, value: str, exchange: Mapping[str, Any]) -> str:
    if name.lower() == _key_in(exchange).lower():
        return _key_field(exchange)
    if value == HIDDEN:
        return f'{shlex.quote(f"{name}: ")}"${_NO_NAME.sub("_", name.upper())}"'
    return shlex.quote(f"{name}: {value}")


def _key_field(exchange: Mapping[str, Any]) -> str:
    name = key_name(str(exchange.get("principal", "alice")))
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


def _key_in(exchange: Mapping[str, Any]) -> str:
    """The field that the key is in. A report may come from anywhere: what is no name of a field is none."""
    name = str(exchange["request"].get("key_in", "Authorization"))
    return name if _FIELD.fullmatch(name) else "Authorization"


def _is_whole(request: Mapping[str, Any]) -> bool:
    """Whether the body that was sent is known to its end."""
    body = request["body"]
    return request.get("made_of") is not None or (isinstance(body, str) and _CUT.search(body) is None)

"""Steps and expectations as short phrases, the way a picture of a dialogue has room for them.

A phrase is ASCII: what is not is written as an escape, because two spellings of one letter look alike. It knows the vocabulary's words, and no
lanes or columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from continuity_spec.expectations import groups, inner_groups
from continuity_spec.flow import flow
from continuity_spec.model import TURNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from continuity_spec.expectations import Expectations
    from continuity_spec.model import Step

Phrases = tuple[str, ...]
"""What stands at one arrow or mark: a line each, before it is wrapped."""

_DRAWN_OTHERWISE = frozenset({"say", "returns", "messages", "as", "compress", "model"})
SEEN = ("sees", "recalls", "forgets", "summary", "system", "tools", "reads", "ran", "serial")
TOLD = (
    "session",
    "announces",
    "goes_on_with",
    "response",
    "answer",
    "like",
    "body",
    "headers",
    "valid",
    "agrees",
    "one_id",
    "ended",
    "envelope",
    "hides",
)
_LONG = re.compile(r"""([^\s"{}\[\],]{32})[^\s"{}\[\],]{8,}""")
_MODEL = {"fails": "fails", "summary fails": "the summary fails", "calls client": "calls a tool of the client"}


def asked(step: Step) -> Phrases:
    """What a request says: the verb, the words, and under which ids."""
    params = {name: value for name, value in step.params.items() if name not in _DRAWN_OTHERWISE}
    if step.verb == "request":
        return (_joined([f"{params.pop('method')} {params.pop('path')}", *_pairs(params)]),)
    copies = f"{step.at_once} x " if step.at_once > 1 else ""
    opening = f"{copies}{step.verb}{_said(step)}" if step.verb in TURNS else f"{step.verb} {_joined(_pairs(params))}"
    own = _pairs(params) if step.verb in TURNS else []
    return (_joined([opening, *own]), *_messages(step.params.get("messages")))


def _said(step: Step) -> str:
    if "say" in step.params:
        return f' "{step.params["say"]}"'
    return f" returns {step.params['returns']}" if "returns" in step.params else ""


def _messages(messages: object) -> Iterator[str]:
    if isinstance(messages, list):
        yield from (_plain(f"{each['role']}: {flow(each['content'])}") for each in messages)
    elif messages is not None:
        yield f"messages {messages}"


def done(step: Step) -> Phrases:
    """What a control does to the server, with the rows of an old database below it."""
    if step.verb == "control":
        params = step.params["params"]
        return (_joined([str(step.params["name"]), *_pairs(params if isinstance(params, Mapping) else {})]),)
    if step.verb == "legacy":
        servers = f"start {step.params['servers']} servers" if "servers" in step.params else "start"
        return (f"{servers} on an old database", *_rows(step.params["rows"]))
    if step.verb == "break_store":
        return (f"break_store {step.params['what']}",)
    return (_joined([f"{step.verb} {_joined(_pairs(step.params))}".strip()]),)


def _rows(rows: object) -> Iterator[str]:
    for row in rows if isinstance(rows, list) else ():
        turns = f", turns {_list(row['turns'])}" if "turns" in row else ""
        session = f", session {row['session']}" if "session" in row else ""
        data = f", data {flow(row['data'])}" if "data" in row else ""
        yield f"{row.get('conversation', 'no slug')}: response {row['response']}{session}{turns}{data}" + (
            "" if session or data else ", which is gone"
        )


def told(expect: Expectations) -> Phrases:
    """What the client is told: status, ids, body."""
    stated = any("status" in group for group in groups(expect))

    def phrase(group: Expectations) -> str:
        implied = group is expect if not stated else "status" not in expect and not list(inner_groups(group))
        status = _status(group["status"]) if "status" in group else "2xx" if implied else ""
        return _joined([status, *_pairs({word: group[word] for word in group if word in TOLD})])

    return tuple(_branches(expect, phrase))


def seen(expect: Expectations) -> Phrases:
    """What the model sees."""
    return tuple(
        _branches(expect, lambda group: _joined([_sight(word, group[word]) for word in SEEN if word in group]))
    )


def answered(model: object) -> Phrases:
    """What the model does, where a step tells it to do anything but answer."""
    if isinstance(model, Mapping):
        return (_joined(_pairs(model)),)
    return (_MODEL.get(str(model), str(model)),) if model is not None else ()


def _branches(expect: Expectations, phrase: Callable[[Expectations], str], lead: str = "") -> Iterator[str]:
    """Give the group's own phrase, then those of the groups inside it, each with what it holds under."""
    own = phrase(expect)
    if own:
        yield f"{lead}{own}"
    for condition, group in _alternatives(expect):
        yield from _branches(group, phrase, f"{lead}{condition} ")


def _alternatives(expect: Expectations) -> Iterator[tuple[str, Expectations]]:
    """Give the groups inside; those of an option that only say its own value are one."""
    for word, value in expect.items():
        if word.startswith("by ") and isinstance(value, Mapping):
            said = [_with_that(group, choice) for choice, group in value.items()]
            if all(each == said[0] for each in said):
                yield f"{word.removeprefix('by ')}={' or '.join(value)}:", said[0]
                continue
        yield from inner_groups({word: value})


def _with_that(said: Any, choice: str) -> Any:
    """Write "that" for the value of the option that a branch is for."""
    if isinstance(said, Mapping):
        return {key: _with_that(value, choice) for key, value in said.items()}
    return "that" if said == choice else said


def _sight(word: str, value: object) -> str:
    if word == "summary":
        return "a summary" if value else "no summary"
    if value is True:
        return word
    if isinstance(value, Mapping):
        return f"{word} {', '.join(f'{label} {times} x' for label, times in value.items())}"
    return f"{word} {_list(value)}"


def _status(status: object) -> str:
    if status == "any":
        return "any status, or none"
    return " or ".join(map(str, status)) if isinstance(status, list) else str(status)


def _pairs(params: Mapping[str, object]) -> list[str]:
    return [_plain(name if value is True else f"{name} {_value(value)}") for name, value in params.items()]


def _value(value: object) -> str:
    return _list(value) if isinstance(value, list) and all(isinstance(each, str) for each in value) else flow(value)


def _list(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "nothing"
    return str(value)


def _joined(phrases: Sequence[str]) -> str:
    return ", ".join(filter(None, phrases))


def _plain(text: str) -> str:
    escaped = text.encode("ascii", "backslashreplace").decode()
    return _LONG.sub(r"\1...", escaped)

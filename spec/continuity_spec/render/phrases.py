"""Describe steps and expectations in short phrases that fit beside an arrow of a sequence diagram.

A phrase is ASCII. Other characters are written as escapes, because two spellings of a letter can look the same. This module
knows the words of the vocabulary; it does not know how a diagram is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from continuity_spec.expectations import Expectations, groups, inner_groups
from continuity_spec.flow_yaml import flow_yaml
from continuity_spec.model import TURNS, Step

Phrases = tuple[str, ...]
"""The text of one arrow or divider: one phrase for each line, before it is wrapped."""

_SHOWN_ELSEWHERE = frozenset({"say", "returns", "messages", "as", "compress", "kill", "model"})
MODEL_WORDS = ("sees", "recalls", "forgets", "summary", "system", "tools", "reads", "ran", "serial")
"""The expectations about what the model sees."""
ANSWER_WORDS = (
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
    "discreet",
    "hides",
)
"""The expectations about what the client receives."""
_LONG = re.compile(r"""([^\s"{}\[\],]{32})[^\s"{}\[\],]{8,}""")
_RELEASES = {"start_previous": "start the previous release", "upgrade": "start this release on the same data"}
_MODEL_PHRASES = {"fails": "fails", "summary fails": "the summary fails", "calls client": "calls a tool of the client"}


def request_phrases(step: Step) -> Phrases:
    """Describe a request: the verb, the message, and the ids that it sends."""
    params = {name: value for name, value in step.params.items() if name not in _SHOWN_ELSEWHERE}
    if step.verb == "request":
        return (_joined([f"{params.pop('method')} {params.pop('path')}", *_pairs(params)]),)
    if step.verb not in TURNS:
        return (f"{step.verb} {_joined(_pairs(params))}",)
    copies = f"{step.at_once} x " if step.at_once > 1 else ""
    turn = f"{copies}{step.verb}{_message(step)}"
    return (_joined([turn, *_pairs(params)]), *_messages(step.params.get("messages")))


def _message(step: Step) -> str:
    if "say" in step.params:
        return f' "{step.params["say"]}"'
    return f" returns {step.params['returns']}" if "returns" in step.params else ""


def _messages(messages: object) -> Iterator[str]:
    if isinstance(messages, list):
        yield from (_plain(f"{each['role']}: {flow_yaml(each['content'])}") for each in messages)
    elif messages is not None:
        yield f"messages {messages}"


def control_phrases(step: Step) -> Phrases:
    """Describe what a control does to the server, with the rows of an old database below it."""
    if step.verb == "control":
        params = step.params["params"]
        return (_joined([str(step.params["name"]), *_pairs(params if isinstance(params, Mapping) else {})]),)
    if step.verb == "legacy":
        servers = f"start {step.params['servers']} servers" if "servers" in step.params else "start"
        what = "an earlier release adds rows" if "add" in step.params else f"{servers} on an old database"
        return (what, *_rows(step.params["rows"]))
    if step.verb == "replicas":
        return (f"start more processes on the same store, {step.params['servers']} in all",)
    if step.verb in _RELEASES:
        return (_RELEASES[step.verb],)
    if step.verb == "break_store":
        return (f"break_store {step.params['what']}",)
    return (_joined([f"{step.verb} {_joined(_pairs(step.params))}".strip()]),)


def _rows(rows: object) -> Iterator[str]:
    for row in rows if isinstance(rows, list) else ():
        turns = f", turns {_list(row['turns'])}" if "turns" in row else ""
        session = f", session {row['session']}" if "session" in row else ""
        data = f", data {flow_yaml(row['data'])}" if "data" in row else ""
        yield f"{row.get('conversation', 'no slug')}: response {row['response']}{session}{turns}{data}" + (
            "" if session or data else ", which is gone"
        )


def answer_phrases(expect: Expectations) -> Phrases:
    """Describe what the client receives: status, ids, body. A status that is not stated is 2xx."""
    stated = any("status" in group for group in groups(expect))

    def phrase(group: Expectations) -> str:
        implied = group is expect if not stated else "status" not in expect and not list(inner_groups(group))
        status = _said_status(group) or ("2xx" if implied else "")
        return _joined([status, *_pairs({word: group[word] for word in group if word in ANSWER_WORDS})])

    return tuple(_branches(expect, phrase))


def _said_status(group: Expectations) -> str:
    """The status that a group states. With another one than that of `only_if`, the rest of the scenario does not apply."""
    if "only_if" in group:
        return f"only if {_status(group['only_if'])}"
    return _status(group["status"]) if "status" in group else ""


def model_view_phrases(expect: Expectations) -> Phrases:
    """Describe what the model sees."""
    return tuple(
        _branches(expect, lambda group: _joined([_view(word, group[word]) for word in MODEL_WORDS if word in group]))
    )


def model_action_phrases(model: object) -> Phrases:
    """Describe what the model does, if a step makes it do more than answer."""
    if isinstance(model, Mapping):
        return (_joined(_pairs(model)),)
    return (_MODEL_PHRASES.get(str(model), str(model)),) if model is not None else ()


def _branches(expect: Expectations, phrase: Callable[[Expectations], str], lead: str = "") -> Iterator[str]:
    """Yield the phrase of the group itself, then those of the groups inside it, each after its condition."""
    own = phrase(expect)
    if own:
        yield f"{lead}{own}"
    for condition, group in _alternatives(expect):
        yield from _branches(group, phrase, f"{lead}{condition} ")


def _alternatives(expect: Expectations) -> Iterator[tuple[str, Expectations]]:
    """Yield the groups inside. The groups of an option that differ only in the value of the option become one."""
    for word, value in expect.items():
        if word.startswith("by ") and isinstance(value, Mapping):
            inner = [_with_that(group, choice) for choice, group in value.items()]
            if all(each == inner[0] for each in inner):
                yield f"{word.removeprefix('by ')}={' or '.join(value)}:", inner[0]
                continue
        yield from inner_groups({word: value})


def _with_that(group: Any, choice: str) -> Any:
    """Replace the value of the option by "that"."""
    if isinstance(group, Mapping):
        return {key: _with_that(value, choice) for key, value in group.items()}
    return "that" if group == choice else group


def _view(word: str, value: object) -> str:
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
    if isinstance(value, Mapping) and value.keys() == {"tip", "alias"}:
        return f"{value['tip']} (echo=alias: {value['alias']})"
    return (
        _list(value) if isinstance(value, list) and all(isinstance(each, str) for each in value) else flow_yaml(value)
    )


def _list(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "nothing"
    return str(value)


def _joined(phrases: Sequence[str]) -> str:
    return ", ".join(filter(None, phrases))


def _plain(text: str) -> str:
    """Escape what is not ASCII, and cut long words."""
    escaped = text.encode("ascii", "backslashreplace").decode()
    return _LONG.sub(r"\1...", escaped)

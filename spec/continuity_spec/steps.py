"""Makes the typed scenarios of an entry out of checked data, and infers from the steps what the target must offer.

It knows the vocabulary's words, and no files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from continuity_spec.flow import flow
from continuity_spec.model import REQUESTS, TURNS, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from continuity_spec.yaml_source import Document

_MODIFIERS = ("expect", "at_once", "during")


def read_steps(document: Document, data: list[Any], path: tuple[str | int, ...]) -> tuple[Step, ...]:
    """Read the steps that stand at this path of the document."""
    return tuple(_step(document, item, (*path, index)) for index, item in enumerate(data))


def _step(document: Document, data: Any, path: tuple[str | int, ...]) -> Step:
    if isinstance(data, str):
        return Step(data, {}, {}, 1, (), (), document.place(path), data)
    verb = next(key for key in data if key not in _MODIFIERS)
    return Step(
        verb=verb,
        params=_params(verb, data[verb]),
        expect=data.get("expect", {}),
        at_once=data.get("at_once", 1),
        during=read_steps(document, data.get("during", []), (*path, "during")),
        together=read_steps(document, data[verb], (*path, verb)) if verb == "together" else (),
        place=document.place(path),
        text=_text(verb, data),
    )


def _params(verb: str, value: Any) -> Mapping[str, object]:
    if verb == "together":
        return {}
    if verb == "break_store":
        return {"what": value}
    if verb == "control":
        [(name, params)] = value.items()
        return {"name": name, "params": params}
    checked: Mapping[str, object] = value
    return checked


def _text(verb: str, data: Mapping[str, Any]) -> str:
    """Write the step as it stands there, on one line, without what is expected."""
    if verb == "together":
        return f"together [{_texts(data[verb])}]"
    at_once = f" at_once {data['at_once']}" if "at_once" in data else ""
    during = f" during [{_texts(data['during'])}]" if "during" in data else ""
    return f"{verb} {flow(data[verb])}{at_once}{during}"


def _texts(steps: Iterable[Any]) -> str:
    """Write the steps inside another one, without a second pair of brackets around each."""
    return "; ".join(step if isinstance(step, str) else _text(_verb(step), step) for step in steps)


def _verb(step: Mapping[str, Any]) -> str:
    return next(key for key in step if key not in _MODIFIERS)


def inferred_needs(steps: Iterable[Step]) -> frozenset[str]:
    """Tell what the target must offer for these steps to make sense."""
    return frozenset(need for step in steps for part in step.walk() for need in _needs(part))


def _needs(step: Step) -> Iterator[str]:
    if step.verb == "respond" or (step.verb in REQUESTS and "response" in step.params) or step.verb == "evict":
        yield "responses"
    if step.verb in {"get", "delete"} and "session" in step.params:
        yield "sessions"
    if step.params.get("as") == "bob":
        yield "tenants"
    if step.verb in TURNS:
        yield from _needs_of_turn(step.params)


def calls_client(model: object) -> bool:
    """Tell whether the model calls a tool of the client in a turn, alone or beside one of the target's."""
    return model == "calls client" or (isinstance(model, dict) and "calls" in model)


def _needs_of_turn(params: Mapping[str, object]) -> Iterator[str]:
    if params.get("stream") is True:
        yield "streaming"
    if params.get("compress") is True:
        yield "compression"
    if calls_client(params.get("model")) or "returns" in params:
        yield "client-tools"

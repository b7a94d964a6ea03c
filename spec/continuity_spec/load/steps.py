"""Turn the checked data of a scenario into steps.

It knows the words of the vocabulary, and reads no files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from continuity_spec.flow_yaml import flow_yaml
from continuity_spec.load.yaml_document import Document
from continuity_spec.model import Step

_MODIFIERS = ("expect", "at_once", "during")
"""The keys of a step beside its verb."""


def read_steps(document: Document, data: list[Any], path: tuple[str | int, ...]) -> tuple[Step, ...]:
    """Read the steps at this path of the document."""
    return tuple(_step(document, item, (*path, index)) for index, item in enumerate(data))


def _step(document: Document, data: Any, path: tuple[str | int, ...]) -> Step:
    if isinstance(data, str):
        return Step(data, {}, {}, 1, (), (), document.place(path), data)
    verb = _verb(data)
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


def _verb(step: Mapping[str, Any]) -> str:
    return next(key for key in step if key not in _MODIFIERS)


def _params(verb: str, value: Any) -> Mapping[str, object]:
    if verb == "together":
        return {}
    if verb == "break_store":
        return {"what": value}
    if verb == "replicas":
        return {"servers": value}
    if verb == "control":
        [(name, params)] = value.items()
        return {"name": name, "params": params}
    checked: Mapping[str, object] = value
    return checked


def _text(verb: str, data: Mapping[str, Any]) -> str:
    """Write the step on one line, without its expectations."""
    if verb == "together":
        return f"together [{_texts(data[verb])}]"
    at_once = f" at_once {data['at_once']}" if "at_once" in data else ""
    during = f" during [{_texts(data['during'])}]" if "during" in data else ""
    return f"{verb} {flow_yaml(data[verb])}{at_once}{during}"


def _texts(steps: Iterable[Any]) -> str:
    return "; ".join(step if isinstance(step, str) else _text(_verb(step), step) for step in steps)

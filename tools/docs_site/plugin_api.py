"""The reference of what a plugin can use and must provide: everything in `continuity_conformance.plugin`."""

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

from continuity_conformance import plugin
from continuity_conformance.core.entry_points import GROUPS

PAGE = "reference/plugin-api.md"
_INTRODUCTION = """\
# Plugin API

Everything in `continuity_conformance.plugin`. A plugin imports nothing else of the kit; what is not listed here may change. [How to write a target](../how-to/plugin.md),
[how to write a pack](../how-to/pack.md).

| entry-point group | what it names |
|---|---|
| `{target}` | a class with `versions` and `profile(version, say)`: see `TargetPlugin` |
| `{pack}` | a subclass of `Pack` |
"""


def pages() -> dict[str, str]:
    intro = _INTRODUCTION.format(target=GROUPS["target"], pack=GROUPS["pack"])
    return {
        PAGE: "\n".join((intro, *(line for name in plugin.__all__ for line in _entry(name, getattr(plugin, name)))))
    }


def _entry(name: str, value: Any) -> Iterator[str]:
    yield from (f"## {name}", "", "```python", _declared(name, value), "```", "")
    about = inspect.getdoc(value) if inspect.isclass(value) or inspect.isfunction(value) else ""
    if about and not about.startswith(f"{name}("):
        yield from (about, "")
    if inspect.isclass(value):
        yield from _members(value)


def _declared(name: str, value: Any) -> str:
    if inspect.isfunction(value):
        return f"def {name}{_signature(value)}"
    if not inspect.isclass(value):
        return f"{name} = {_words(value)}"
    bases = [base.__name__ for base in value.__bases__ if base is not object]
    return f"class {name}({', '.join(bases)})" if bases else f"class {name}"


def _members(value: type) -> Iterator[str]:
    if dataclasses.is_dataclass(value):
        rows = [
            f"| `{each.name}` | `{_words(each.type)}` | {_default(each)} |"
            for each in dataclasses.fields(value)
            if not each.name.startswith("_")
        ]
        yield from ("| field | type | default |", "|---|---|---|", *rows, "")
    for name, member in vars(value).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        kind = "async " if inspect.iscoroutinefunction(function) else ""
        about = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ")
        yield from (f"`{kind}{name}{_signature(function)}`", f":   {about or 'See its name.'}", "")


def _signature(function: Any) -> str:
    return str(inspect.signature(function)).replace("'", "").replace("continuity_conformance.", "")


def _default(each: "dataclasses.Field[Any]") -> str:
    if each.default is not dataclasses.MISSING:
        return f"`{each.default!r}`"
    return "required" if each.default_factory is dataclasses.MISSING else "empty"


def _words(kind: object) -> str:
    return (
        (kind.__name__ if inspect.isclass(kind) else str(kind))
        .replace("typing.", "")
        .replace("collections.abc.", "")
        .replace("|", "or")
    )

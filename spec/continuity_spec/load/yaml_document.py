"""Read YAML as plain data that remember where each value is written.

This is a safe subset of YAML: one document, no aliases, no tags, limited nesting. A file therefore cannot grow while it is
read, and cannot exhaust the stack. Only `true`, `false`, `null`, `~` and decimal numbers get a type; `on`, `no`, `1:30` and
dates stay strings. A duplicate key is an error. This module does not know what the data mean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from continuity_spec.errors import NotYamlError, UnreadableFileError
from continuity_spec.model import Place

DEEPEST: Final = 50
"""How many lists and mappings may be nested. The bundled requirements nest 17."""

_TAG = "tag:yaml.org,2002:"
_TYPED = re.compile(
    r"(?P<bool>true|false)|(?P<null>null|~|)|(?P<int>[-+]?(?:0|[1-9][0-9]*))|(?P<float>[-+]?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?)"
)
_CONSTRUCTORS: dict[str, Callable[[str], object]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": lambda text: text == "true",
    "null": lambda _: None,
}


@dataclass(frozen=True, slots=True)
class Node:
    """Where a value begins, and the same for the values inside it."""

    place: Place
    inner: Mapping[str | int, Node] = field(default_factory=dict)
    keys: Mapping[str | int, Place] = field(default_factory=dict)
    """Where the keys of a mapping are written."""


@dataclass(frozen=True, slots=True)
class Document:
    """The data of one file, and the place of each value."""

    file: str
    data: object
    root: Node | None

    def place(self, path: Sequence[str | int] = ()) -> Place:
        """Find where the value at this path begins, or the nearest value around it."""
        return self._nearest(path)[0].place

    def key_place(self, path: Sequence[str | int]) -> Place:
        """Find where the last key of this path is written, or the nearest value around it."""
        node, missing = self._nearest(path[:-1])
        last = node.inner.get(path[-1])
        if missing or last is None:
            return node.place
        return node.keys.get(path[-1], last.place)

    def _nearest(self, path: Sequence[str | int]) -> tuple[Node, bool]:
        """Follow the path as far as it leads; True if it ends early."""
        node = self.root or Node(Place(self.file, 1, 1))
        for part in path:
            if part not in node.inner:
                return node, True
            node = node.inner[part]
        return node, False


def read_yaml(path: Path, name: str | None = None) -> Document:
    """Read one file. Error messages call it `name`, by default its path."""
    file = name if name is not None else str(path)
    return parse_yaml(read_text(path, file), file)


def read_text(path: Path, file: str) -> str:
    """Read a text file. Error messages call it `file`."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnreadableFileError(
            file, f"cannot be read ({reason.lower()})", "Check the path and the permissions."
        ) from error
    except UnicodeDecodeError as error:
        raise UnreadableFileError(file, f"byte {error.start} is not UTF-8", "Save the file as UTF-8.") from error


def parse_yaml(text: str, file: str) -> Document:
    """Parse a text. Error messages call it `file`."""
    try:
        return _Builder(yaml.parse(text, Loader=yaml.CSafeLoader), file).document()
    except yaml.MarkedYAMLError as error:
        raise _explained(error, file) from error
    except yaml.YAMLError as error:
        raise NotYamlError(file, str(error).strip().replace("\n", " "), "Save it as plain UTF-8 YAML.") from error


def _explained(error: yaml.MarkedYAMLError, file: str) -> NotYamlError:
    mark = error.problem_mark or error.context_mark
    where = str(Place(file, mark.line + 1, mark.column + 1)) if mark else file
    context = f" {error.context}" if error.context else ""
    return NotYamlError(where, f"not YAML: {error.problem}{context}", "Check quotes, brackets and indentation here.")


class _Builder:
    """Builds plain data and their places from the events of a YAML parser."""

    def __init__(self, events: Iterator[yaml.Event], file: str) -> None:
        self._events = events
        self._file = file

    def document(self) -> Document:
        data: object = None
        root: Node | None = None
        for event in self._events:
            if isinstance(event, yaml.NodeEvent):
                data, root = self._value(event, 1)
            elif isinstance(event, yaml.DocumentStartEvent) and root is not None:
                raise self._error(event, "a second document begins", "Write one document in a file.")
        return Document(self._file, data, root)

    def _value(self, event: yaml.Event, depth: int) -> tuple[object, Node]:
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event), Node(self._place(event))
        if isinstance(event, yaml.AliasEvent):
            raise self._error(event, f'the alias "*{event.anchor}" is not allowed', "Write the value itself.")
        if depth > DEEPEST:
            raise self._error(event, f"nested more than {DEEPEST} levels deep", "Use fewer levels.")
        return self._mapping(event, depth) if isinstance(event, yaml.MappingStartEvent) else self._list(event, depth)

    def _list(self, start: yaml.Event, depth: int) -> tuple[object, Node]:
        built = [self._value(event, depth + 1) for event in iter(self._next, None)]
        return [data for data, _ in built], Node(
            self._place(start), {index: node for index, (_, node) in enumerate(built)}
        )

    def _mapping(self, start: yaml.Event, depth: int) -> tuple[object, Node]:
        data: dict[str, object] = {}
        inner: dict[str | int, Node] = {}
        keys: dict[str | int, Place] = {}
        for event in iter(self._next, None):
            key = self._key(event)
            if key in data:
                raise self._error(event, f'duplicate key "{key}"', "Keep one of the two.")
            keys[key] = self._place(event)
            data[key], inner[key] = self._value(next(self._events), depth + 1)
        return data, Node(self._place(start), inner, keys)

    def _next(self) -> yaml.Event | None:
        """Return the next event of a list or mapping; None at its end."""
        event = next(self._events)
        return None if isinstance(event, yaml.CollectionEndEvent) else event

    def _key(self, event: yaml.Event) -> str:
        if isinstance(event, yaml.ScalarEvent):
            return str(event.value)
        raise self._error(event, "a key is not a string", 'If these braces are text, quote them: "${name}".')

    def _scalar(self, event: yaml.ScalarEvent) -> object:
        kind = _kind(event)
        if kind not in _CONSTRUCTORS:
            raise self._error(event, f'the tag "{event.tag}" is not allowed', "Write the value without a tag.")
        try:
            return _CONSTRUCTORS[kind](event.value)
        except ValueError as error:  # Python limits the digits of a number
            raise self._error(event, "a number has too many digits", "Use fewer digits, or quote it.") from error

    def _error(self, event: yaml.Event, what: str, remedy: str) -> NotYamlError:
        return NotYamlError(str(self._place(event)), what, remedy)

    def _place(self, event: yaml.Event) -> Place:
        mark: Any = event.start_mark  # the C parser sets it on every event
        return Place(self._file, mark.line + 1, mark.column + 1)


def _kind(event: yaml.ScalarEvent) -> str:
    """Name the type of a value: by its tag, else by its spelling if it is not quoted."""
    if event.tag not in {None, "!"}:
        return str(event.tag).removeprefix(_TAG)
    typed = _TYPED.fullmatch(event.value) if event.implicit[0] else None
    return typed.lastgroup or "str" if typed else "str"

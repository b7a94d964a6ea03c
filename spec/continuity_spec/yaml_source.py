"""YAML as plain data that remember where they are written.

Only what looks like a number, true, false or null is one: `on`, `no`, `1:30` and dates stay the words that they are. A
key that is said twice is an error. This module knows nothing about what the data mean.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from continuity_spec.errors import NotYamlError, UnreadableFileError
from continuity_spec.model import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_TAG = "tag:yaml.org,2002:"


_TYPED = re.compile(
    r"(?P<bool>true|false)|(?P<null>null|~|)|(?P<int>[-+]?(?:0|[1-9][0-9]*))|(?P<float>[-+]?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?)"
)


_CONSTRUCTORS: dict[str, Callable[[str], object]] = {
    "int": int,
    "float": float,
    "bool": lambda text: text == "true",
    "null": lambda _: None,
}


class _Loader(yaml.CSafeLoader):
    """The C parser, with a resolver of our own."""

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: tuple[bool, bool]) -> str:
        if kind is yaml.MappingNode:
            return _TAG + "map"
        if kind is yaml.SequenceNode:
            return _TAG + "seq"
        typed = _TYPED.fullmatch(value) if implicit[0] and value is not None else None
        return _TAG + (typed.lastgroup or "str" if typed else "str")


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML file: its data, and where each of them stands."""

    file: str
    data: object
    root: yaml.Node | None

    def place(self, path: Sequence[str | int] = ()) -> Place:
        """Tell where the value at this path begins, or the nearest value around it."""
        node = self.root
        for part in path:
            inner = _child(node, part)
            if inner is None:
                break
            node = inner[1]
        return self._at(node)

    def key_place(self, path: Sequence[str | int]) -> Place:
        """Tell where the last key of this path stands."""
        node = self.root
        for part in path[:-1]:
            inner = _child(node, part)
            node = inner[1] if inner else node
        inner = _child(node, path[-1])
        return self._at(inner[0] if inner else node)

    def _at(self, node: yaml.Node | None) -> Place:
        return Place(self.file, 1, 1) if node is None else _place(self.file, node.start_mark)


def read_yaml(path: Path, name: str | None = None) -> Document:
    """Read one file; `name` is what messages call it."""
    file = name if name is not None else str(path)
    return parse_yaml(read_text(path, file), file)


def read_text(path: Path, file: str) -> str:
    """Give the text of a file, or an error that names it."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnreadableFileError(
            file, f"cannot be read ({reason.lower()})", "Check the name and the rights."
        ) from error
    except UnicodeDecodeError as error:
        raise UnreadableFileError(file, f"byte {error.start} is not UTF-8", "Save the file as UTF-8.") from error


def parse_yaml(text: str, file: str) -> Document:
    """Parse a text; `file` is what messages call it."""
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        data = None if root is None else _Builder(loader, file).build(root)
    except yaml.MarkedYAMLError as error:
        raise _explained(error, file) from error
    except yaml.YAMLError as error:
        raise NotYamlError(file, str(error).strip().replace("\n", " "), "Save it as plain UTF-8 YAML.") from error
    finally:
        loader.dispose()
    return Document(file, data, root)


def _explained(error: yaml.MarkedYAMLError, file: str) -> NotYamlError:
    mark = error.problem_mark or error.context_mark
    where = str(_place(file, mark)) if mark else file
    context = f" {error.context}" if error.context else ""
    return NotYamlError(where, f"not YAML: {error.problem}{context}", "Check quotes, brackets and indentation here.")


class _Builder:
    """Makes plain data of nodes."""

    def __init__(self, loader: _Loader, file: str) -> None:
        self._loader = loader
        self._file = file

    def build(self, node: yaml.Node) -> object:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item) for item in node.value]
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode) -> dict[str, object]:
        data: dict[str, object] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node)
            if key in data:
                where = str(_place(self._file, key_node.start_mark))
                raise NotYamlError(where, f'the key "{key}" is said twice', "Keep one of the two.")
            data[key] = self.build(value_node)
        return data

    def _key(self, node: yaml.Node) -> str:
        if isinstance(node, yaml.ScalarNode):
            return str(node.value)
        where = str(_place(self._file, node.start_mark))
        raise NotYamlError(where, "a key is not a plain word", 'Quote it if braces are meant: "${name}".')

    def _scalar(self, node: yaml.Node) -> object:
        kind = node.tag.removeprefix(_TAG)
        if kind == "str":
            return node.value
        if kind in _CONSTRUCTORS:
            return _CONSTRUCTORS[kind](node.value)
        where = str(_place(self._file, node.start_mark))
        raise NotYamlError(where, f'the tag "{node.tag}" is not known', "Write plain values without tags.")


def _child(node: yaml.Node | None, part: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == str(part)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    return None


def _place(file: str, mark: yaml.Mark) -> Place:
    return Place(file, mark.line + 1, mark.column + 1)

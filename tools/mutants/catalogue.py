"""Mutants: the reference server with one small mechanical change in its rules or its store.

The tools that are kept do not fit: see ARCHITECTURE.md. A mutant is known by where it is and what it changes, not by the number of its line.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from edits import Edit, Text, edits_of

PACKAGE: Final = Path(__file__).parents[2] / "reference_server" / "continuity_server"
STORE: Final = (
    "store.backfill",
    "store.deletions",
    "store.histories",
    "store.records",
    "store.schema",
    "store.shared_locks",
    "store.store",
    "store.upgrade",
    "store.write",
    "store.writer",
    "turn.commit",
    "turn.locks",
    "turn.resolve",
    "turn.tips",
)
"""What stores, reads back and finds: nothing else decides what is stored where. What waits for a disk that is slow, locked or broken is left out, since the suite cannot
break a disk: tests/server does."""


def _rules() -> tuple[str, ...]:
    """The rules: one file an area, and what they share."""
    return tuple(sorted(f"rules.{file.stem}" for file in (PACKAGE / "rules").glob("*.py")))


def path_of(module: str) -> Path:
    """The path of a module inside the package: `rules.echo` is `rules/echo.py`."""
    return Path(*module.split(".")).with_suffix(".py")


RULES: Final = _rules()


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change. `lines` are those of the statement up to the end of the change: if none of them runs, nothing can show it."""

    module: str
    function: str
    source: str
    edit: Edit
    lines: range
    named: frozenset[str]  # the requirements that the function says it is about
    number: int = 1

    @property
    def id(self) -> str:
        """Where and what, without the number of the line."""
        where = f"{self.module}.{self.function}" if self.function else self.module
        again = f" ({self.number})" if self.number > 1 else ""
        return f"{where} · {self.source} · {self.edit.operator}: {self.edit.before} → {self.edit.after}{again}"


def mutants(modules: Sequence[str] = (*RULES, *STORE)) -> list[Mutant]:
    """Every mutant of these modules, in the order of their text."""
    return [mutant for module in modules for mutant in _mutants(module)]


def _mutants(module: str) -> Iterator[Mutant]:
    code = (PACKAGE / path_of(module)).read_text(encoding="utf-8")
    text = Text(code)
    seen: Counter[str] = Counter()
    for node, parents in _walk(ast.parse(code), ()):
        for edit in edits_of(text, node, parents):
            place = node if hasattr(node, "lineno") else parents[-1]
            lines, named = _lines(place, (*parents, node)), _named(parents)
            mutant = Mutant(module, _function(parents), text.line(place.lineno), edit, lines, named)
            seen[mutant.id] += 1
            yield replace(mutant, number=seen[mutant.id])


def _function(parents: Sequence[ast.AST]) -> str:
    """The function, with the names of what it is in."""
    return ".".join(
        one.name for one in parents if isinstance(one, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    )


def _named(parents: Sequence[ast.AST]) -> frozenset[str]:
    """The ids in the docstring: `SLUG-07, -13: …` names two."""
    functions = [one for one in parents if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    said = " ".join(ast.get_docstring(one) or "" for one in functions)
    runs = re.findall(r"([A-Z]+)((?:,? ?-\d\d)+)", said)
    return frozenset(f"{area}-{number}" for area, numbers in runs for number in re.findall(r"\d\d", numbers))


def _lines(place: ast.AST, within: Sequence[ast.AST]) -> range:
    statement = next(one for one in reversed(within) if isinstance(one, ast.stmt))
    return range(statement.lineno, place.end_lineno + 1)


def _walk(node: ast.AST, parents: tuple[ast.AST, ...]) -> Iterator[tuple[ast.AST, tuple[ast.AST, ...]]]:
    """The tree without decorators, annotations, docstrings and messages for people."""
    yield node, parents
    for child in ast.iter_child_nodes(node):
        if child not in _left_out(node):
            yield from _walk(child, (*parents, node))


def _left_out(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [*node.decorator_list, *([node.returns] if node.returns else [])]
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases]
    if isinstance(node, ast.AnnAssign | ast.arg):
        return [node.annotation] if node.annotation else []
    if isinstance(node, ast.Call):
        return list(node.args) if getattr(node.func, "id", "") in {"TypeVar", "isinstance"} else []
    if isinstance(node, ast.Expr):
        return [node.value] if isinstance(node.value, ast.Constant) else []
    return []


def mutated(mutant: Mutant) -> str:
    """The text of the module with the change in it."""
    whole = (PACKAGE / path_of(mutant.module)).read_bytes()
    edit = mutant.edit
    return (whole[: edit.start] + edit.new.encode() + whole[edit.end :]).decode()

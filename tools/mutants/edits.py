"""Edits: every small change that the operators make to a Python module, found on its syntax tree and made on its text.

What only breaks the module is left out, since its death says nothing of the suite: decorators, annotations, names and keys of dictionaries. So is what is
said to people: docstrings, messages of errors and of the log.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sql import is_sql, sql_edits

_COMPARED: Final = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_ORDERED: Final = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_CALCULATED: Final = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "//"), ast.FloorDiv: ("//", "*")}
_SWAPPED_CALLS: Final = {"max": "min", "min": "max", "any": "all", "all": "any"}
_EMPTY: Final = {"str": '""', "int": "0", "list": "[]", "Messages": "[]", "Fields": "[]", "set": "set()", "dict": "{}"}
_SAID_TO_PEOPLE: Final = frozenset({"Refusal", "invalid", "warning", "info", "getLogger", "StoreUnusableError"})
_NAMES: Final = (ast.Name, ast.Attribute)
_ALIKE: Final = re.compile(
    r"(?:.*\.)?(owner|principal|session|root|tip|line|parent|previous|id|name|response|scope|key|fingerprint|header|ident|following|kind|epoch|upto"
    r"|system|user|before|after|stored|body|messages|slug|chain)"
)
"""Names of texts, numbers and lists of messages: what can stand in the place of another without breaking the call."""


@dataclass(frozen=True, slots=True)
class Edit:
    """The bytes from `start` to `end` become `new`. `before` and `after` say it to a reader."""

    operator: str
    start: int
    end: int
    new: str
    before: str
    after: str


class Text:
    """The text of a module; the tree counts in lines and bytes, and so does this."""

    def __init__(self, text: str) -> None:
        self.bytes = text.encode()
        self._starts = [0]
        for line in self.bytes.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column

    def of(self, node: ast.AST) -> str:
        return self.part(*self.span(node))

    def part(self, start: int, end: int) -> str:
        return self.bytes[start:end].decode()

    def line(self, number: int) -> str:
        return self.part(self._starts[number - 1], self._starts[number]).strip()


def edits_of(text: Text, node: ast.AST, parents: Sequence[ast.AST]) -> Iterator[Edit]:
    """Everything that the operators make of this node."""
    for kind, operator in _OPERATORS:
        if isinstance(node, kind):
            yield from operator(text, node, parents)


def _edit(text: Text, operator: str, node: ast.AST, new: str, after: str | None = None) -> Edit:
    start, end = text.span(node)
    return Edit(operator, start, end, new, _flat(text.of(node)), _flat(new) if after is None else after)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _compare(text: Text, node: ast.Compare, _parents: Sequence[ast.AST]) -> Iterator[Edit]:
    lefts = [node.left, *node.comparators]
    for left, kind, right in zip(lefts, node.ops, node.comparators, strict=False):
        old, new = _COMPARED[type(kind)]
        start, end = text.span(left)[1], text.span(right)[0]
        between = text.part(start, end)
        changed = between.replace(old, new, 1)
        sides = text.of(left), text.of(right)
        yield Edit("comparison", start, end, changed, _flat(between.join(sides)), _flat(changed.join(sides)))


def _negate(text: Text, node: ast.If | ast.While | ast.IfExp, _parents: Sequence[ast.AST]) -> Iterator[Edit]:
    """A condition turned round; where that is what `comparison` does, it is not done twice."""
    test = node.test
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield _edit(text, "condition", test, f"({text.of(test.operand)})")
    elif not isinstance(test, ast.Compare) or isinstance(test.ops[0], _ORDERED):
        yield _edit(text, "condition", test, f"(not ({text.of(test)}))")


def _boolean(text: Text, node: ast.BoolOp, _parents: Sequence[ast.AST]) -> Iterator[Edit]:
    """Each operand left out in turn. What tells `a or b` from `a and b` tells one of these from it too."""
    values = [text.of(value) for value in node.values]
    same = " and " if isinstance(node.op, ast.And) else " or "
    for index in range(len(values)):
        yield _edit(text, "boolean", node, f"({same.join(values[:index] + values[index + 1 :])})")


def _not(text: Text, node: ast.UnaryOp, parents: Sequence[ast.AST]) -> Iterator[Edit]:
    tested = isinstance(parents[-1], ast.If | ast.While | ast.IfExp) and parents[-1].test is node
    if isinstance(node.op, ast.Not) and not tested:
        yield _edit(text, "condition", node, f"({text.of(node.operand)})")


def _comprehension(text: Text, node: ast.comprehension, _parents: Sequence[ast.AST]) -> Iterator[Edit]:
    for condition in node.ifs:
        yield _edit(text, "filter", condition, "True")


def _constant(text: Text, node: ast.Constant, parents: Sequence[ast.AST]) -> Iterator[Edit]:
    if isinstance(node.value, bool):
        yield _edit(text, "constant", node, str(not node.value))
    elif isinstance(node.value, int | float):
        yield _edit(text, "constant", node, f"({node.value!r} + 1)", repr(node.value + 1))
    elif isinstance(node.value, str) and not isinstance(parents[-1], ast.JoinedStr):
        yield from _string(text, node, node.value, parents)


def _string(text: Text, node: ast.Constant, value: str, parents: Sequence[ast.AST]) -> Iterator[Edit]:
    if is_sql(value):
        for before, after, whole in sql_edits(value):
            yield Edit("sql", *text.span(node), f"({whole!r})", before, after)
    elif not _is_name(node, parents) and len(value.split()) <= 1:  # more words are for people
        yield _edit(text, "constant", node, repr(value + "~" if value else "~"))


def _is_name(node: ast.Constant, parents: Sequence[ast.AST]) -> bool:
    """The name of a field, where a wrong one breaks every turn; or the value of a member of an enumeration, where any other is as good."""
    parent = parents[-1]
    if any(isinstance(one, ast.ClassDef) and [_name(base) for base in one.bases] == ["Enum"] for one in parents):
        return isinstance(parent, ast.Assign)
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Attribute) and parent.func.attr in {"get", "format"}
    return isinstance(parent, ast.Subscript) or (isinstance(parent, ast.Dict) and node in parent.keys)


def _calculate(text: Text, node: ast.BinOp, _parents: Sequence[ast.AST]) -> Iterator[Edit]:
    if type(node.op) not in _CALCULATED or any(
        isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (node.left, node.right)
    ):
        return
    if isinstance(node.right, ast.Set | ast.SetComp):
        yield _edit(text, "element", node, f"({text.of(node.left)})")
        return
    old, new = _CALCULATED[type(node.op)]
    start, end = text.span(node.left)[1], text.span(node.right)[0]
    between = text.part(start, end)
    changed = between.replace(old, new, 1)
    sides = text.of(node.left), text.of(node.right)
    yield Edit("arithmetic", start, end, changed, _flat(between.join(sides)), _flat(changed.join(sides)))


def _return(text: Text, node: ast.Return, parents: Sequence[ast.AST]) -> Iterator[Edit]:
    """What is given back becomes the nothing of its kind; where there is none, the caller would only break."""
    function = next(
        parent for parent in reversed(parents) if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    if node.value is None:
        return
    annotated = text.of(function.returns) if function.returns else ""
    if "None" in annotated.split(" | "):
        nothing = "None"
    elif annotated == "bool" and isinstance(node.value, ast.Call):
        nothing = f"not {text.of(node.value)}"
    else:
        nothing = _EMPTY.get(re.split(r"\W", annotated)[0], "")
    if nothing and text.of(node.value) != nothing:
        yield _edit(text, "return", node, f"return {nothing}")


def _removed(text: Text, node: ast.stmt, _parents: Sequence[ast.AST]) -> Iterator[Edit]:
    if isinstance(node, ast.Expr) and (isinstance(node.value, ast.Constant | ast.Yield) or _is_said(node.value)):
        return
    if isinstance(node, ast.Return) and node.value is not None:
        return
    yield _edit(text, "statement", node, "pass", "removed")


def _is_said(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _name(node.func) in _SAID_TO_PEOPLE


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _unguarded(text: Text, node: ast.Try, _parents: Sequence[ast.AST]) -> Iterator[Edit]:
    for handler in node.handlers:
        if handler.type is not None:
            yield _edit(text, "except", handler.type, "()", "nothing is caught")


def _opened(text: Text, node: ast.With | ast.AsyncWith, _parents: Sequence[ast.AST]) -> Iterator[Edit]:
    start, end = text.span(node)[0], text.span(node.items[-1].context_expr)[1]
    if all(item.optional_vars is None for item in node.items):
        yield Edit("with", start, end, "if True", _flat(text.part(start, end)), "without it")


def _call(text: Text, node: ast.Call, _parents: Sequence[ast.AST]) -> Iterator[Edit]:
    name = _name(node.func)
    if isinstance(node.func, ast.Name) and name in _SWAPPED_CALLS:
        yield Edit("call", *text.span(node.func), _SWAPPED_CALLS[name], _flat(text.of(node)), _SWAPPED_CALLS[name])
    for one, two in zip(node.args, node.args[1:], strict=False):
        if _could_be_mistaken(text, one) and _could_be_mistaken(text, two) and text.of(one) != text.of(two):
            start, end = text.span(one)[0], text.span(two)[1]
            swapped = f"{text.of(two)}, {text.of(one)}"
            yield Edit("arguments", start, end, swapped, _flat(text.part(start, end)), swapped)
    yield from _keywords(text, node)


def _could_be_mistaken(text: Text, argument: ast.expr) -> bool:
    """Text or a number beside its like; what has a type of its own would only break the call."""
    return isinstance(argument, _NAMES) and _ALIKE.fullmatch(text.of(argument)) is not None


def _keywords(text: Text, node: ast.Call) -> Iterator[Edit]:
    for keyword in node.keywords:
        if keyword.arg in {None, "param", "prefix"} or _name(node.func) in {"dataclass", "zip", "connect", "TypeVar"}:
            continue
        start, end = text.span(keyword)
        comma = re.match(rb"\s*,", text.bytes[end:])
        yield Edit("arguments", start, end + (comma.end() if comma else 0), "", _flat(text.of(keyword)), "left out")


def _display(text: Text, node: ast.List | ast.Tuple | ast.Set, _parents: Sequence[ast.AST]) -> Iterator[Edit]:
    """A display loses what is unpacked into it."""
    for element in node.elts:
        if isinstance(element, ast.Starred) and len(node.elts) > 1:
            yield _edit(text, "element", element, "*()", "left out")


def _dict(text: Text, node: ast.Dict, _parents: Sequence[ast.AST]) -> Iterator[Edit]:
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None and len(node.keys) > 1:
            start, end = text.span(value)
            yield Edit("element", start, end, "{}", f"**{_flat(text.of(value))}", "left out")


def _slice(text: Text, node: ast.Slice, _parents: Sequence[ast.AST]) -> Iterator[Edit]:
    for bound in (node.lower, node.upper):
        if bound is not None:
            yield _edit(text, "slice", bound, "None", "no bound")


Operator = Callable[[Text, ast.AST, Sequence[ast.AST]], Iterator[Edit]]
_OPERATORS: Final[tuple[tuple[type | tuple[type, ...], Operator], ...]] = (
    (ast.Compare, _compare),
    ((ast.If, ast.While, ast.IfExp), _negate),
    (ast.BoolOp, _boolean),
    (ast.UnaryOp, _not),
    (ast.comprehension, _comprehension),
    (ast.Constant, _constant),
    (ast.BinOp, _calculate),
    (ast.Return, _return),
    ((ast.Expr, ast.AugAssign, ast.Raise, ast.Continue, ast.Break, ast.Delete, ast.Return), _removed),
    (ast.Try, _unguarded),
    ((ast.With, ast.AsyncWith), _opened),
    (ast.Call, _call),
    ((ast.List, ast.Tuple, ast.Set), _display),
    (ast.Dict, _dict),
    (ast.Slice, _slice),
)

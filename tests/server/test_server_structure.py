"""The server reads as an example: a rule decides something, and SQL is in one folder. tests/test_imports.py has the layers."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import continuity_server

PACKAGE = Path(continuity_server.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|WITH|PRAGMA|BEGIN|COMMIT|ROLLBACK|ALTER|DROP)\b [a-zA-Z*(]")
SERVER_FILES = [file for file in FILES if "defects" not in file.parts]


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def name_of(file: Path) -> str:
    return ".".join(["continuity_server", *file.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")


def rule_methods() -> list[ast.FunctionDef]:
    return [
        method
        for file in (PACKAGE / "rules").glob("*.py")
        for cls in tree(file).body
        if isinstance(cls, ast.ClassDef) and cls.name.endswith("Rules")
        for method in cls.body
        if isinstance(method, ast.FunctionDef) and method.name != "__init__"
    ]


def decides_nothing(method: ast.FunctionDef) -> bool:
    """Whether all that a method does is to return a constant, an argument or a field of an argument."""
    statements = [one for one in method.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    if len(statements) != 1 or not isinstance(statements[0], ast.Return):
        return len(statements) == 0
    return _is_plain(statements[0].value)


def _is_plain(value: ast.AST | None) -> bool:
    if isinstance(value, ast.Call):
        copies = isinstance(value.func, ast.Name) and value.func.id in {"list", "tuple", "frozenset", "dict"}
        return copies and all(map(_is_plain, value.args))
    if isinstance(value, ast.List | ast.Tuple | ast.Set):
        return all(map(_is_plain, value.elts))
    if isinstance(value, ast.Attribute | ast.Starred):
        return _is_plain(value.value) and getattr(value.value, "id", "") != "self"
    return value is None or isinstance(value, ast.Constant | ast.Name)


def test_a_method_of_the_rules_decides_something():
    methods = rule_methods()
    plain = [method.name for method in methods if decides_nothing(method)]

    assert len(methods) > 50
    assert len(plain) <= len(methods) / 10, plain


def test_no_argument_of_a_rule_is_unused():
    unused = [
        f"{method.name}({argument.arg})"
        for method in rule_methods()
        for argument in [*method.args.args[1:], *method.args.kwonlyargs]
        if argument.arg not in {node.id for node in ast.walk(method) if isinstance(node, ast.Name)}
    ]

    assert unused == []


@pytest.mark.parametrize("file", [file for file in SERVER_FILES if "store" not in file.parts], ids=name_of)
def test_sql_is_in_the_store_only(file):
    """A defect may replace a part of the store, and so have SQL too."""
    texts = [
        node.value for node in ast.walk(tree(file)) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    calls = [node.attr for node in ast.walk(tree(file)) if isinstance(node, ast.Attribute)]

    assert [text for text in texts if SQL.match(text)] == []
    assert {"execute", "executemany", "executescript"} & set(calls) == set()

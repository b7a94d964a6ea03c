"""The server reads as an example: layers that import downwards, rules that decide, SQL in one folder, one thing for one name."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import continuity_server

PACKAGE = Path(continuity_server.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
TREES = {file: ast.parse(file.read_text(encoding="utf-8")) for file in FILES}
LAYERS = {
    "settings": (),
    "rules": ("settings",),
    "store": ("settings", "rules"),
    "model": ("settings", "rules"),
    "turn": ("settings", "rules", "store", "model"),
    "http": ("settings", "rules", "store", "model", "turn"),
    "defects": ("settings", "rules", "store", "model", "turn", "http"),
    "server": ("settings", "rules", "store", "model", "turn", "http", "defects"),
    "__main__": ("settings", "store", "server"),
    "__init__": (),
}
SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|WITH|PRAGMA|BEGIN|COMMIT|ROLLBACK|ALTER|DROP)\b [a-zA-Z*(]")
SERVER_FILES = [file for file in FILES if "defects" not in file.parts]


def name_of(file: Path) -> str:
    return ".".join(["continuity_server", *file.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")


def layer_of(module: str) -> str:
    return (*module.split("."), "__init__")[1]


def imports(file: Path) -> set[str]:
    """The modules of the server that a file imports, wherever the import is."""
    return {
        node.module
        for node in ast.walk(TREES[file])
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("continuity_server")
    }


def rule_methods() -> list[ast.FunctionDef]:
    return [
        method
        for file in (PACKAGE / "rules").glob("*.py")
        for cls in TREES[file].body
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


@pytest.mark.parametrize("file", [file for file in SERVER_FILES if file.parent.name != "store"], ids=name_of)
def test_sql_is_in_the_store_only(file):
    """A defect may replace a part of the store, and so have SQL too."""
    texts = [
        node.value for node in ast.walk(TREES[file]) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    calls = [node.attr for node in ast.walk(TREES[file]) if isinstance(node, ast.Attribute)]

    assert [text for text in texts if SQL.match(text)] == []
    assert {"execute", "executemany", "executescript"} & set(calls) == set()


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_imports_point_downwards(file):
    layer = layer_of(name_of(file))
    wrong = {module for module in imports(file) if layer_of(module) not in {layer, *LAYERS[layer]}}

    assert wrong == set()


def test_no_module_imports_itself_by_way_of_others():
    known = {name_of(file): imports(file) - {name_of(file)} for file in FILES}
    while leaves := {module for module, needed in known.items() if not needed & known.keys()}:
        known = {module: needed for module, needed in known.items() if module not in leaves}

    assert known == {}


def test_nearly_all_imports_are_at_the_top():
    """Two are not: a server without a defect does not load the defects."""
    inside = [
        name_of(file)
        for file, tree in TREES.items()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]

    assert inside == ["continuity_server.server"] * 2


def test_a_folder_has_at_most_18_modules():
    folders = Counter(file.parent.name for file in FILES if file.name != "__init__.py")

    assert max(folders.values()) <= 18


def test_an_area_has_one_name_in_spec_rules_and_defects():
    areas = {file.stem for file in (PACKAGE.parents[1] / "spec" / "continuity_spec" / "requirements").glob("*.yaml")}

    assert areas <= {file.stem for file in (PACKAGE / "rules").glob("*.py")}
    assert areas <= {file.stem for file in (PACKAGE / "defects").glob("*.py")}


def test_a_class_name_stands_for_one_thing():
    names = Counter(
        node.name for file in SERVER_FILES for node in ast.walk(TREES[file]) if isinstance(node, ast.ClassDef)
    )

    assert [name for name, count in names.items() if count > 1] == []

"""Imports point downwards only. `LAYERS` is the one table of who may import whom; every module is held against it.

Imports inside functions and under TYPE_CHECKING count like all others.
"""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "continuity_spec": ROOT / "spec" / "continuity_spec",
    "continuity_server": ROOT / "reference_server" / "continuity_server",
    "continuity_conformance": ROOT / "conformance" / "continuity_conformance",
    "continuity_plugins": ROOT / "plugins" / "continuity_plugins",
}
OTHER_PACKAGES = {
    "continuity_spec": set(),
    "continuity_server": set(),
    "continuity_conformance": {"continuity_spec"},
    "continuity_plugins": {"continuity_conformance"},
}
# Each package from the bottom up. A layer imports itself and the rows below it; layers of one row do not import each other.
LAYERS = {
    "continuity_spec": [
        "errors expectations derivation flow_yaml openapi",
        "model",
        "variables needs foundations",
        "load render",
        "lint __init__",
    ],
    "continuity_server": [
        "settings fast_json",
        "rules",
        "store model",
        "turn",
        "http",
        "defects",
        "on_postgres",
        "server replicas",
        "__main__",
    ],
    "continuity_conformance": [
        "core",
        "http",
        "target probe",
        "scenario",
        "fuzz",
        "checks",
        "suite",
        "diagnose",
        "plugin results",
        "run report",
        "terminal",
        "pytest doctor torture",
        "ui",
        "cli",
        "__main__",
    ],
    "continuity_plugins": [
        "runtimes postgres_cluster folder_database",
        "one_address",
        "azure_agentserver hermes letta mastra nanobot ogx openclaw openhands reference",
        "reference_postgres",
    ],
}
REPORT_KNOWS = {"core", "http", "results", "report"}
MODULES_IN_A_FOLDER = 18
IMPORTS_INSIDE_FUNCTIONS = 13
PURE = {"aiohttp", "sqlite3", "asyncio", "continuity_server.store", "continuity_server.http"}


def files(package: str) -> dict[str, Path]:
    """The file of every module of a package, by the module's dotted name."""
    folder = PACKAGES[package]
    named = {(package, *file.relative_to(folder).with_suffix("").parts): file for file in folder.rglob("*.py")}
    return {".".join(parts[:-1] if parts[-1] == "__init__" else parts): file for parts, file in named.items()}


@cache
def trees(package: str) -> dict[str, ast.Module]:
    """Every module of a package as a syntax tree. Made once it is asked for: who only collects tests needs none."""
    return {name: ast.parse(file.read_text(encoding="utf-8")) for name, file in files(package).items()}


@cache
def every_module() -> set[str]:
    return {name for package in PACKAGES for name in files(package)}


def imports(tree: ast.AST) -> Iterator[str]:
    """What is imported anywhere in a module: modules by their whole name where they are ours."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in every_module() else node.module for name in names)


def layer(module: str) -> str:
    return (*module.split("."), "__init__")[1]


def row(package: str, module: str) -> int:
    """The number of the row that a module's layer stands in; every layer stands in one."""
    return next(number for number, names in enumerate(LAYERS[package]) if layer(module) in names.split())


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_the_packages_that_it_may(package):
    wrong = {
        (module, name)
        for module, tree in trees(package).items()
        for name in imports(tree)
        if name.partition(".")[0] in PACKAGES.keys() - OTHER_PACKAGES[package] - {package}
    }

    assert wrong == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_layers_import_only_what_is_below_them(package):
    upwards = {
        (module, name)
        for module, tree in trees(package).items()
        for name in imports(tree)
        if name.startswith(f"{package}.")
        and layer(name) != layer(module)
        and row(package, name) >= row(package, module)
    }

    assert upwards == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_imports_itself_by_way_of_others(package):
    graph = {module: {name for name in imports(tree) if name != module} for module, tree in trees(package).items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as cycle:
        pytest.fail(f"these import each other: {' → '.join(cycle.args[1])}")


@pytest.mark.parametrize("package", PACKAGES)
def test_a_folder_has_few_modules(package):
    folders = [folder for folder in PACKAGES[package].rglob("*") if folder.is_dir()]
    sizes = {folder.name: len([*folder.glob("[!_]*.py")]) for folder in (PACKAGES[package], *folders)}

    assert {name: size for name, size in sizes.items() if size > MODULES_IN_A_FOLDER} == {}


def test_plugins_know_only_the_plugin_api():
    known = {name for tree in trees("continuity_plugins").values() for name in imports(tree)}

    assert {name for name in known if name.startswith("continuity_conformance")} == {"continuity_conformance.plugin"}


def test_reports_are_made_from_results_alone():
    known = {
        name
        for module, tree in trees("continuity_conformance").items()
        if layer(module) == "report"
        for name in imports(tree)
        if name.startswith("continuity_conformance.")
    }

    assert {layer(name) for name in known} <= REPORT_KNOWS


@pytest.mark.parametrize("module", [name for name in files("continuity_server") if layer(name) == "rules"])
def test_the_rules_know_neither_http_nor_a_database(module):
    found = set(imports(trees("continuity_server")[module]))

    assert {name for name in found if name.startswith(tuple(PURE))} == set()


def test_defects_are_known_to_the_composition_root_alone():
    knowing = {
        module
        for module, tree in trees("continuity_server").items()
        if layer(module) != "defects" and any(".defects" in name for name in imports(tree))
    }

    assert knowing <= {"continuity_server.server", "continuity_server.__main__"}


def test_few_imports_stand_inside_functions_and_each_says_why():
    inside = [
        (f"{module}:{node.lineno}", lines(module)[node.lineno - 1])
        for package in PACKAGES
        for module, tree in trees(package).items()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]

    assert [place for place, line in inside if "PLC0415 - " not in line] == []
    assert len(inside) <= IMPORTS_INSIDE_FUNCTIONS, [place for place, _ in inside]


def lines(module: str) -> list[str]:
    package, *rest = module.split(".")
    path = PACKAGES[package].joinpath(*rest)
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text().splitlines()


def test_the_table_names_every_layer():
    named = {package: {name for names in rows for name in names.split()} for package, rows in LAYERS.items()}

    assert {package: {layer(module) for module in files(package)} for package in PACKAGES} == {
        package: names | {"__init__"} for package, names in named.items()
    }

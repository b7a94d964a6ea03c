"""One name for one thing: a class name is used once in all packages, and an area has the same name everywhere."""

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = [
    ROOT / "spec" / "continuity_spec",
    ROOT / "reference_server" / "continuity_server",
    ROOT / "conformance" / "continuity_conformance",
    ROOT / "plugins" / "continuity_plugins",
]
SERVER = ROOT / "reference_server" / "continuity_server"
AREAS = {file.stem for file in (ROOT / "spec" / "continuity_spec" / "requirements").glob("*.yaml")}
SHARED_BY_CHECKS = {
    "contract_sequences": "the checks of CONTRACT that play sequences",
    "long_history": "the checks of HISTORY about long conversations and images",
    "registry": "where checks register",
    "unchanged_history": "the check of HISTORY that compares texts character by character",
    "web_pages": "the checks of ISOLATE about web pages",
}


def modules(folder: Path) -> set[str]:
    return {file.stem for file in folder.glob("*.py")} - {"__init__"}


def test_a_class_name_stands_for_one_thing():
    trees = [ast.parse(file.read_text(encoding="utf-8")) for package in PACKAGES for file in package.rglob("*.py")]
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))

    assert [name for name, times in names.items() if times > 1] == []


def test_an_area_has_rules_and_defects_of_its_name():
    assert modules(SERVER / "rules") - {"messages"} == AREAS
    assert modules(SERVER / "defects") - {"registry", "responses"} == AREAS


def test_a_module_of_checks_is_an_area_or_says_what_it_serves():
    checks = modules(ROOT / "conformance" / "continuity_conformance" / "checks")

    assert checks - AREAS == SHARED_BY_CHECKS.keys()

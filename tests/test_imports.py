"""Imports point one way: plugins, conformance, spec; the server stands alone. Rules of the contract know neither HTTP nor a database."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "spec/continuity_spec": set(),
    "conformance/continuity_conformance": {"continuity_spec"},
    "plugins/continuity_plugins": {"continuity_conformance", "continuity_spec"},
    "reference_server/continuity_server": set(),
}
OURS = {folder.rpartition("/")[2] for folder in ALLOWED}
RULES = ROOT / "reference_server" / "continuity_server" / "rules"


def imported(file: Path) -> set[str]:
    """The top-level packages that a module imports, wherever the import stands."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    plain = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    named = [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {name.partition(".")[0] for name in (*plain, *named)}


@pytest.mark.parametrize("folder", ALLOWED)
def test_a_package_imports_only_what_it_may(folder):
    package = folder.rpartition("/")[2]
    wrong = {
        str(file.relative_to(ROOT)): extra
        for file in (ROOT / folder).rglob("*.py")
        if (extra := (imported(file) & OURS) - ALLOWED[folder] - {package})
    }

    assert wrong == {}


@pytest.mark.parametrize("file", sorted(RULES.glob("*.py")), ids=lambda file: file.stem)
def test_the_rules_know_neither_http_nor_a_database(file):
    found = imported(file)

    assert not found & {"aiohttp", "sqlite3", "asyncio"}

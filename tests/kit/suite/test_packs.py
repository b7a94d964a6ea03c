"""A pack of somebody else's is played and told together with the release, never changes its verdict, and breaks nothing where it is broken itself."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import house_rules_package as house
import jsonschema
import pytest
from processes import CONTINUITY

from continuity_conformance import plugin
from continuity_conformance.checks.registry import CHECKS
from continuity_conformance.cli.main import main
from continuity_conformance.core.entry_points import PluginError
from continuity_conformance.core.run_options import RunOptions
from continuity_conformance.core.verdicts import RunVerdict, Verdict, undecided
from continuity_conformance.results import write as results
from continuity_conformance.results.ledger import Ledger
from continuity_conformance.suite.packs import Packs, installed
from continuity_conformance.suite.release import ReleasedSpec, newest
from continuity_conformance.target.resolve import resolve
from continuity_conformance.terminal import summary
from continuity_spec import load_requirements
from continuity_spec.load.schema import schema


def continuity(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(path), "XDG_CACHE_HOME": str(path / "cache"), "COLUMNS": "80"}
    return subprocess.run(
        [CONTINUITY, *arguments], cwd=path, env=env, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The test's folder, whose packages this process finds as a new one would; what they leave in it is taken away again."""
    before = set(sys.modules)
    monkeypatch.setattr("continuity_conformance.checks.registry.CHECKS", dict(CHECKS))
    monkeypatch.setattr("continuity_conformance.suite.packs.PACK_CONTROLS", {})
    monkeypatch.syspath_prepend(str(tmp_path))
    installed.cache_clear()
    yield tmp_path
    installed.cache_clear()
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_both_kinds_are_listed_with_where_they_come_from(here, capsys):
    house.found(here)
    code = main(["plugins", "--json"])
    listed = json.loads(capsys.readouterr().out)
    mine = {each["kind"]: each for each in listed if each["name"] == "house"}

    assert code == 0
    assert listed[0]["distribution"] == "session-continuity"
    assert "reference" in {each["name"] for each in listed}
    assert mine["pack"]["about"].startswith("Rules of the house")
    assert mine["target"]["about"].startswith("The gateway of the house")
    assert {(each["distribution"], each["version"], each["error"]) for each in mine.values()} == {
        ("house-rules", "2.1", None)
    }
    assert mine["pack"]["module"] == "house_rules.pack:HousePack"


def test_its_requirements_are_in_every_list(here, capsys):
    house.found(here)
    main(["spec", "list", "--json"])
    listed = {row["id"]: row["pack"] for row in json.loads(capsys.readouterr().out)}
    main(["spec", "show", "house-02"])
    main(["checklist"])
    shown = capsys.readouterr().out

    assert listed["HOUSE-01"] == listed["HOUSE-02"] == "house"
    assert listed["ECHO-01"] is None
    assert "HOUSE-02 (SHOULD)" in shown
    assert "## pack house" in shown


def test_its_files_are_linted_with_the_others(here, capsys):
    house.found(here, rules=house.RULES.replace("MUST carry", "MUST, and should, carry"))
    code = main(["spec", "lint"])
    said = capsys.readouterr().out

    assert code == 1
    assert len(said.splitlines()) == 1
    assert "house.yaml:1:3: HOUSE-01" in said


def test_its_failure_closes_the_gate_and_is_reported_under_its_area(tmp_path):
    house.found(tmp_path)
    done = continuity(tmp_path, "check", "reference", "--area", "HOUSE", "--accept-untested", "--report", "report")
    written = house.results(tmp_path / "report")
    rows = {row["id"]: row for row in written["requirements"]}

    assert done.returncode == 1, done.stdout + done.stderr
    assert rows["HOUSE-01"]["verdict"] == "fail"
    assert rows["HOUSE-02"]["verdict"] == rows["HOUSE-03"]["verdict"] == "pass"
    assert written["packs"] == [{"name": "house", "distribution": "house-rules", "version": "2.1"}]
    assert "\nHOUSE            2       1           0               0\n" in done.stdout
    assert "HOUSE-01" in (tmp_path / "report/report.html").read_text()
    jsonschema.validate(written, schema("results"))


TAKEN = house.RULES.replace("HOUSE-", "ECHO-")
BROKEN = {
    "an area of the release": ({"rules": TAKEN}, "the area ECHO, which belongs to the release"),
    "an id twice": ({"rules": house.RULES.replace("HOUSE-02", "HOUSE-01")}, "the id HOUSE-01 is taken"),
    "broken YAML": ({"rules": "- id: [\n"}, "house.yaml"),
    "a word that is none": ({"rules": house.RULES.replace("  level", "  levle")}, 'Did you mean "level"?'),
    "a check that nobody has": ({"rules": house.RULES.replace(": house_models", ": house_doors")}, "house_doors"),
    "a check of ours": ({"pack": house.PACK.replace("house_models", "openai_client")}, "openai_client"),
    "an import that fails": ({"pack": "import nobody_has_this\n"}, "No module named 'nobody_has_this'"),
    "code that ends Python": ({"pack": "raise SystemExit(3)\n"}, "SystemExit"),
    "a class that is no pack": ({"pack": "class HousePack: pass\n"}, "is not a pack"),
    "a control of the release": (
        {"pack": house.PACK.replace("clear-out", "evict")},
        'the control "evict" already exists',
    ),
    "no requirements": ({"pack": house.PACK.replace("*.yaml", "*.yml")}, "it has no requirements"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_pack_is_told_by_its_name_and_package(name, here):
    changed, said = BROKEN[name]
    house.found(here, **changed)
    found = installed()

    assert found.loaded == ()
    assert [str(error).startswith("pack house (house-rules 2.1): ") for error in found.broken] == [True]
    assert said in str(found.broken[0])
    assert len(str(found.broken[0]).splitlines()) == 1


def test_a_broken_pack_stops_nobody(here, capsys):
    house.found(here, pack="import nobody_has_this\n")
    code = main(["spec", "list"])
    said = capsys.readouterr()
    main(["plugins", "--json"])
    listed = json.loads(capsys.readouterr().out)

    assert code == 0
    assert said.out.startswith("Core: ")
    assert len(said.err.splitlines()) == 1
    assert "nobody_has_this" in said.err
    assert {each["kind"] for each in listed if "nobody_has_this" in (each["error"] or "")} == {"pack"}


def test_two_packs_may_not_have_one_area_or_one_name(here):
    house.found(here)
    house.found(here, "terrace", "terrace-rules", pack=house.PACK.replace("house_models", "terrace_models"))
    house.found(here, "house", "other-rules", pack=house.PACK.replace("house_models", "other_models"))
    found = installed()
    said = [str(error) for error in found.broken]

    assert [pack.plugin.distribution for pack in found.loaded] == ["house-rules"]
    assert len(said) == 2
    assert "pack house (other-rules 2.1): its name is taken by the pack house (house-rules 2.1)" in said[0]
    assert "pack terrace (terrace-rules 2.1): " in said[1]
    assert "the area HOUSE, which belongs to the pack house (house-rules 2.1)" in said[1]


def test_two_targets_of_one_name_are_told_where_one_is_asked_for(tmp_path, monkeypatch):
    for package in ("house-rules", "other-rules"):
        module = package.replace("-", "_")
        house.found(tmp_path, package=package, points=f"[continuity.targets]\nhouse = {module}.server:HouseTarget\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(PluginError, match="its name is taken by the target house") as refusal:
        resolve("house", None)
    assert "target house (other-rules 2.1)" in str(refusal.value)


def test_a_target_whose_code_fails_is_told_by_its_name_and_package(tmp_path, monkeypatch):
    house.found(tmp_path, points="[continuity.targets]\nhouse = house_rules.nowhere:HouseTarget\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(
        PluginError, match=r"target house \(house-rules 2.1\): it cannot be loaded: ModuleNotFoundError"
    ):
        resolve("house", None)


# The verdict and the gate, on results that are made up.


def beside(tmp_path, *broken: PluginError) -> ReleasedSpec:
    """The release with the pack, as if it were installed."""
    house.found(tmp_path)
    own = [replace(each, pack="house") for each in load_requirements(tmp_path / "house_rules/rules/house.yaml")]
    release = newest()
    return replace(release, requirements=(*release.requirements, *own), packs=Packs(broken=broken))


def judged(release: ReleasedSpec, **verdicts: Verdict):
    ledger = Ledger(RunOptions("http://127.0.0.1:1"), release)
    for each in release.requirements:
        ledger.add(undecided(each, verdicts.get(each.area, Verdict.PASS), "for a reason"))
    return ledger.close()


@pytest.mark.parametrize(
    ("verdict", "code"), [(Verdict.PASS, 0), (Verdict.FAIL, 1), (Verdict.NOT_TESTED, 5), (Verdict.ERROR, 4)]
)
def test_a_pack_changes_the_gate_and_never_the_verdict(tmp_path, verdict, code):
    outcome = judged(beside(tmp_path), HOUSE=verdict)
    told = " ".join(" ".join(summary.lines(outcome, None)).split())

    assert outcome.verdict is RunVerdict.CONFORMANT
    assert outcome.complete
    assert outcome.gate.exit_code == code
    assert "verdict: conformant http" in told
    assert (f"(exit code {code})" in told) is bool(code)
    assert "pack house: " in told
    jsonschema.validate(results.as_json(outcome), schema("results"))


def test_a_pack_that_passes_makes_no_target_conformant(tmp_path):
    assert judged(beside(tmp_path), ECHO=Verdict.FAIL).verdict is RunVerdict.NOT_CONFORMANT


def test_a_release_without_its_pack_is_complete_and_the_gate_says_what_was_left_out(tmp_path):
    release = beside(tmp_path)
    ledger = Ledger(RunOptions("http://127.0.0.1:1"), release)
    own = [each for each in release.requirements if not each.pack]
    ledger.select(each.id for each in own)
    for each in own:
        ledger.add(undecided(each, Verdict.PASS, ""))
    outcome = ledger.close()

    assert outcome.verdict is RunVerdict.CONFORMANT
    assert outcome.gate.exit_code == 5


def test_a_pack_that_cannot_be_used_closes_the_gate(tmp_path):
    outcome = judged(beside(tmp_path, PluginError("it cannot be loaded.", where="pack far (far-rules 1.0)")))

    assert outcome.verdict is RunVerdict.CONFORMANT
    assert outcome.gate.exit_code == 4
    assert "pack far (far-rules 1.0): it cannot be loaded." in outcome.gate.reasons


def test_every_public_hook_is_in_the_docs():
    pages = (Path(__file__).parents[3] / "docs/how-to" / name for name in ("plugin.md", "pack.md"))
    page = "\n".join(path.read_text(encoding="utf-8") for path in pages)

    assert [name for name in plugin.__all__ if not re.search(rf"\b{name}\b", page)] == []


def test_the_pack_of_the_docs_is_the_one_that_is_tested():
    page = (Path(__file__).parents[3] / "docs/how-to/pack.md").read_text(encoding="utf-8")
    shown = house.RULES.partition("\n- id: HOUSE-03")[0]

    assert shown in page

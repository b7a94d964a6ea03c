"""`continuity spec prose` and `continuity spec vectors` print what the spec package contains."""

import json

import pytest

from continuity_conformance.cli.main import main
from continuity_spec import load_spec
from continuity_spec.load.loader import BUNDLED
from continuity_spec.render.prose import render_prose


def test_prose_prints_the_document(capsys):
    assert main(["spec", "prose"]) == 0
    assert capsys.readouterr().out.rstrip() == render_prose(load_spec()).rstrip()


def test_vectors_lists_every_file(capsys):
    assert main(["spec", "vectors"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == sorted(path.name for path in (BUNDLED / "vectors").iterdir())


@pytest.mark.parametrize("name", ["derivation-v1", "derivation-v1.json"])
def test_vectors_prints_a_file(capsys, name):
    assert main(["spec", "vectors", name]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((BUNDLED / "vectors" / "derivation-v1.json").read_text(encoding="utf-8"))


def test_vectors_tells_its_folder(capsys):
    assert main(["spec", "vectors", "--folder"]) == 0
    assert capsys.readouterr().out.strip() == str(BUNDLED / "vectors")


def test_an_unknown_file_of_vectors_is_a_usage_error(capsys):
    assert main(["spec", "vectors", "derivation-v9"]) == 2
    assert "derivation-v1.json" in capsys.readouterr().err

"""The signature of each defect: the symptoms of the bundled server with that defect. Measured by `make matrix`; part of the package."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from continuity_conformance import suite
from continuity_conformance.diagnose.symptoms import Symptoms, read_place

FILE: Final = Path(suite.__file__).with_name("signatures.json")


@cache
def signatures() -> Mapping[str, Symptoms]:
    """The measured signature of each defect, by its name."""
    data = json.loads(FILE.read_text(encoding="utf-8"))
    return {name: _signature(row, data["requirements"]) for name, row in data["defects"].items()}


def _signature(row: Mapping[str, Mapping[str, list[str]]], requirements: Sequence[str]) -> Symptoms:
    fails = {identity: tuple(map(read_place, places)) for identity, places in row["fails"].items()}
    return Symptoms(fails, frozenset(requirements) - fails.keys() - set(row["undecided"]))


def as_json(measured: Mapping[str, Symptoms], requirements: Sequence[str]) -> str:
    """The file: one line for each defect, so that a review shows which signatures changed."""
    lines = [f"  {json.dumps(name)}: {_row(each, requirements)}" for name, each in measured.items()]
    head = json.dumps(list(requirements))
    return f'{{\n "requirements": {head},\n "defects": {{\n' + ",\n".join(lines) + "\n }\n}\n"


def _row(each: Symptoms, requirements: Sequence[str]) -> str:
    fails = {identity: [place.text for place in places] for identity, places in each.fails.items()}
    undecided = [identity for identity in requirements if identity not in each.passes and identity not in fails]
    return json.dumps({"fails": fails, "undecided": undecided}, ensure_ascii=False)

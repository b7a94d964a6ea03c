"""Measure the signatures of the defects: on each of them all areas are played, and every place that fails is kept.

`python tools/matrix/signatures.py` measures all defects and writes suite/signatures.json; with names, only these are measured again. Of the costly requirements
(restart, kill, broken store, generated data) a signature has those that its defect was made for; the others are undecided in it.
"""

import sys
from collections.abc import Sequence

from matrix import EVERY_AREA, played, rows
from page import write_page

from continuity_conformance.diagnose.signatures import FILE, as_json, signatures
from continuity_conformance.diagnose.symptoms import Symptoms, symptoms
from continuity_conformance.suite.defects import ListedDefect, defects, find
from continuity_spec import load_spec


def signature(defect: ListedDefect) -> Symptoms:
    return symptoms(played(defect, EVERY_AREA))


def main(names: Sequence[str]) -> None:
    measured = rows([find(name, defects()) for name in names] or list(defects().values()), signature)
    if names:
        measured = {name: measured.get(name) or signatures()[name] for name in defects()}
    requirements = [requirement.id for requirement in load_spec().requirements if requirement.manual is None]
    FILE.write_text(as_json(measured, requirements), encoding="utf-8")
    signatures.cache_clear()
    write_page()


if __name__ == "__main__":
    main(sys.argv[1:])

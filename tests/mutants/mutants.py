"""The share of mechanical mutants that the suite kills, and what the survivors are.

`make mutants` (`PYTHONPATH=tests python tests/mutants/mutants.py`) plays the mutants and writes `docs/reference/mutants.json` and `.md` anew. Those that `words.yaml` calls equivalent are left
out, since nothing can kill them. `--all` plays them too, everything on each, and says where the word is wrong; `--new` plays only those of which nothing is
published; with parts of ids it only tells what becomes of the mutants that have them.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from catalogue import Mutant, mutants
from hunt import Fate, fate, reached
from published import FATES, PAGE, as_json, equivalents, page, read_fates
from rounds import ALONE, WHOLE, Reach, Round, everything, promising

_SIDE_BY_SIDE = 2


def hunt(hunted: Sequence[Mutant], chosen: Callable[[Mutant, Reach], Iterator[Round]]) -> dict[str, Fate]:
    """The fate of each, two at a time; what killed it the last time is played first."""
    known, found = read_fates(), {}
    with ProcessPoolExecutor(_SIDE_BY_SIDE) as pool:
        reach = Reach(dict(zip((*WHOLE, *ALONE), pool.map(reached, (*WHOLE, *ALONE)), strict=True)))
        playing = {}
        for mutant in hunted:
            rounds = [*known.get(mutant.id, Fate()).again, *chosen(mutant, reach)]
            playing[pool.submit(fate, mutant, rounds)] = mutant
        for done in as_completed(playing):
            found[playing[done].id] = _told(playing[done], done.result())
    return found


def _told(mutant: Mutant, its: Fate) -> Fate:
    print(json.dumps([its.killer, its.options, its.seconds, mutant.id], ensure_ascii=False), flush=True)
    return its


def _chosen(said: argparse.Namespace) -> list[Mutant]:
    alike, known = equivalents(), read_fates()
    if said.parts:
        return [one for one in mutants() if any(part in one.id for part in said.parts)]
    if said.new:
        return [one for one in mutants() if one.id not in known and one.id not in alike]
    return [one for one in mutants() if said.all or one.id not in alike]


def publish(fates: dict[str, Fate]) -> None:
    """Write what there is now; what is gone is forgotten."""
    FATES.write_text(as_json({one.id: fates[one.id] for one in mutants() if one.id in fates}), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="play everything, on the equivalent ones too")
    parser.add_argument("--new", action="store_true", help="play only those of which nothing is published")
    parser.add_argument("parts", nargs="*", help="parts of ids")
    said = parser.parse_args()
    fates = hunt(_chosen(said), everything if said.all else promising)
    if not said.parts:
        publish({**read_fates(), **fates} if said.new else fates)
    for wrong in sorted(one for one in equivalents() if fates.get(one, Fate()).killed):
        print(f"called equivalent, and killed by {fates[wrong].killer}: {wrong}")


if __name__ == "__main__":
    main()

"""The share of mechanical mutants that the suite kills, and what the survivors are.

`make mutants` (`python tools/mutants/mutants.py`) plays the mutants and writes `fates.json` and `docs/reference/mutants.md` anew. Those that
`words.yaml` calls equivalent are left out, since nothing can kill them. `--all` plays them too, everything on each, and says where the word is wrong; `--new`
plays only those of which nothing is published, and can be stopped and taken up again, after `--quick` for instance, which keeps what dies in seconds and leaves the
others open; with parts of ids it only tells what becomes of the mutants that have them. `--with SLUG-01` plays that requirement alone, on what nothing
has killed yet: for who closes a gap.
"""

import argparse
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from catalogue import PACKAGE, Mutant, mutants
from hunt import Fate, fate, reached
from published import FATES, PAGE, as_json, equivalents, page, read_fates
from rounds import ALONE, ONE_PERSON, OPTIONS, SILENT, WHOLE, Reach, Round, everything, promising, quick

from continuity_conformance.core.cache import user_cache
from continuity_conformance.core.files import replace_file
from continuity_spec.load.loader import BUNDLED

_SIDE_BY_SIDE = 4
"""Twice the cores that it is meant for: much of a round is waiting."""


def hunt(
    hunted: Sequence[Mutant], chosen: Callable[[Mutant], Iterable[Round]], known: Mapping[str, Fate]
) -> Iterator[tuple[Mutant, Fate]]:
    """The fate of each as it is found, several at a time; what killed it the last time is played first."""
    with ProcessPoolExecutor(_SIDE_BY_SIDE) as pool:
        playing = {pool.submit(fate, one, [*known.get(one.id, Fate()).again, *chosen(one)]): one for one in hunted}
        for done in as_completed(playing):
            yield playing[done], _told(playing[done], done.result())


def _reach() -> Reach:
    """Which lines run in which rounds. It takes minutes, so it is kept until the server or the spec changes."""
    rounds = (*WHOLE, *ALONE)
    sources = [*sorted(PACKAGE.rglob("*.py")), *sorted((BUNDLED / "requirements").glob("*.yaml"))]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    kept = user_cache() / "mutants" / f"{digest}.json"
    if not kept.exists():
        with ProcessPoolExecutor(_SIDE_BY_SIDE) as pool:
            found = list(pool.map(reached, rounds))
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps([sorted(lines) for lines in found]), encoding="utf-8")
    told = json.loads(kept.read_text(encoding="utf-8"))
    return Reach({one: {(module, line) for module, line in lines} for one, lines in zip(rounds, told, strict=True)})


def _rounds(said: argparse.Namespace) -> Callable[[Mutant], Iterable[Round]]:
    if said.requirements:
        named = [Round(options, tuple(said.requirements)) for options in (*OPTIONS, ONE_PERSON, SILENT)]
        return lambda _: named
    rounds, reach = everything if said.all else quick if said.quick else promising, _reach()
    return lambda one: rounds(one, reach)


def _told(mutant: Mutant, its: Fate) -> Fate:
    print(json.dumps([its.killer, its.options, its.seconds, mutant.id], ensure_ascii=False), flush=True)
    return its


def _chosen(said: argparse.Namespace) -> list[Mutant]:
    alike, known = equivalents(), read_fates()
    if said.requirements:
        alive = [one for one in mutants() if one.id not in alike and not known.get(one.id, Fate()).killed]
        return [one for one in alive if not said.parts or any(part in one.id for part in said.parts)]
    if said.parts:
        return [one for one in mutants() if any(part in one.id for part in said.parts)]
    if said.new or said.quick:
        return [one for one in mutants() if one.id not in known and one.id not in alike]
    return [one for one in mutants() if said.all or one.id not in alike]


def keep(fates: Mapping[str, Fate]) -> None:
    """Write what there is now; what is gone is forgotten."""
    replace_file(FATES, as_json({one.id: fates[one.id] for one in mutants() if one.id in fates}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="play everything, on the equivalent ones too")
    parser.add_argument("--new", action="store_true", help="play only those of which nothing is published")
    parser.add_argument(
        "--quick", action="store_true", help="like --new, with what takes seconds; keeps only what dies"
    )
    parser.add_argument(
        "--with",
        dest="requirements",
        metavar="ID",
        action="append",
        help="play only this requirement (may be repeated); keeps only what dies",
    )
    parser.add_argument("parts", nargs="*", help="parts of ids")
    said = parser.parse_args()
    known, partly = read_fates(), said.quick or bool(said.requirements)
    going_on = said.new or partly
    fates = dict(known) if going_on else {}
    for mutant, its in hunt(_chosen(said), _rounds(said), known):
        if its.killed or not partly:
            fates[mutant.id] = its
        if going_on:
            keep(fates)
    if not said.parts and not partly:
        keep(fates)
        PAGE.write_text(page(), encoding="utf-8")
    for wrong in sorted(one for one in equivalents() if fates.get(one, Fate()).killed):
        print(f"called equivalent, and killed by {fates[wrong].killer}: {wrong}")


if __name__ == "__main__":
    main()

"""Rounds: which requirements are played on a mutant, under which options, and in which order.

What cannot show a mutant, because the changed lines never run in it, is left out; and so is, under other options, with restarts and of random requests, what has
little to do with the module: a mutant that only that would kill counts as a survivor. `--all` leaves out nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from catalogue import Mutant
from option_sets import OPTIONS

from continuity_conformance.checks.registry import CONCLUDING, disturbs
from continuity_spec import Requirement, load_spec

Lines = set[tuple[str, int]]
_AREAS: Final[Mapping[str, tuple[str, ...]]] = {
    "store.backfill": ("MIGRATE",),
    "store.deletions": ("DELETE", "SLUG", "MIGRATE"),
    "store.histories": ("HISTORY", "SLUG", "COMPRESS", "DERIVE"),
    "rules.contract": ("CONTRACT", "ERROR"),
    "rules.concur": ("CONCUR",),
    "rules.delete": ("DELETE",),
    "rules.derive": ("DERIVE",),
    "rules.discover": ("DISCOVER",),
    "rules.durable": ("DURABLE",),
    "rules.echo": ("ECHO", "HISTORY", "ISOLATE", "MIGRATE"),
    "rules.env": ("ENV",),
    "rules.error": ("ERROR", "CONTRACT"),
    "rules.history": ("HISTORY",),
    "rules.messages": ("HISTORY", "CONTRACT"),
    "rules.isolate": ("ISOLATE", "CONTRACT"),
    "turn.commit": ("HISTORY", "SLUG", "COMPRESS", "DELETE"),
    "rules.migrate": ("MIGRATE", "SLUG"),
    "rules.compress": ("COMPRESS",),
    "turn.locks": ("CONCUR", "SLUG"),
    "store.upgrade": ("MIGRATE",),
    "turn.resolve": ("SLUG", "ECHO", "COMPRESS", "HISTORY", "DERIVE", "ISOLATE", "MIGRATE"),
    "store.schema": ("DELETE", "MIGRATE", "ISOLATE"),
    "rules.slug": ("SLUG",),
    "store.store": ("HISTORY", "SLUG", "DURABLE", "DELETE", "MIGRATE", "ISOLATE", "DERIVE", "COMPRESS", "CONTRACT"),
    "rules.stream": ("STREAM", "COMPRESS"),
    "store.wal": ("DURABLE",),
    "store.writer": ("HISTORY", "DURABLE", "CONCUR"),
    "turn.tips": ("COMPRESS", "DELETE"),
    "store.write": ("HISTORY", "SLUG", "DURABLE", "COMPRESS", "ISOLATE", "DERIVE", "MIGRATE"),
}
"""Where a mutant of a module is likely to show."""
_MIGRATING: Final = frozenset({"store.backfill", "rules.migrate", "store.upgrade", "store.schema"})
_UNDER: Final[Mapping[str, frozenset[str]]] = {
    "other": frozenset(_AREAS) - _MIGRATING - {"rules.contract"},
    "in place": frozenset(
        {
            "rules.env",
            "turn.commit",
            "rules.compress",
            "turn.resolve",
            "rules.slug",
            "store.histories",
            "store.store",
            "store.write",
        }
    ),
    "least": frozenset({"rules.derive", "rules.echo", "rules.env", "rules.stream", "turn.resolve"}),
}
"""Which modules have anything to do with the options of a set."""


@dataclass(frozen=True, slots=True)
class Round:
    """Some requirements, played together under one set of options."""

    options: str
    ids: tuple[str, ...]

    def requirements(self) -> list[Requirement]:
        return [load_spec().requirement(one) for one in self.ids]


def _entries(*, disturbing: bool) -> list[Requirement]:
    return [one for one in load_spec().requirements if one.manual is None and disturbs(one) is disturbing]


_CALM: Final = _entries(disturbing=False)
_DISTURBING: Final = _entries(disturbing=True)
_TOGETHER: Final = [one for one in _CALM if one.always is not None or one.check in CONCLUDING]
"""What is judged on everything that was said."""
_ALWAYS: Final = [one for one in _TOGETHER if one.always is not None]
_RANDOM: Final = [one for one in _CALM if one.area == "CONTRACT"]
_SPOKEN: Final = [one for one in _CALM if one not in _TOGETHER and one not in _RANDOM]
_OTHERS: Final = 24
"""So many of the requirements that get to the changed lines by the way: the shortest, from all areas."""
ONE_PERSON: Final = "one person"
"""Not options, but a server without keys that only one person can reach."""
SILENT: Final = "silent"
"""Options under which the server tells no session ids. Much cannot be observed then, so that only a failure counts."""
_TELLING: Final = frozenset({"rules.echo", "rules.stream"})
DEFAULT, *OTHERS = OPTIONS
ALONE: Final = tuple(Round(DEFAULT, (one.id,)) for one in [*_CALM, *_DISTURBING] if one not in _TOGETHER)
WHOLE: Final = tuple(
    Round(options, tuple(one.id for one in entries)) for entries in (_CALM, _DISTURBING) for options in OPTIONS
)


class Reach:
    """Which lines run in which rounds: each requirement alone under the default options, all together under every set of them."""

    def __init__(self, lines: Mapping[Round, Lines]) -> None:
        self._lines = lines

    def gets_to(self, one: Round, mutant: Mutant) -> bool:
        return any((mutant.module, line) in self._lines[one] for line in mutant.lines)


def quick(mutant: Mutant, reach: Reach) -> Iterator[Round]:
    """What is most likely to show a mutant, and takes seconds."""
    calm = _reached(_SPOKEN, mutant, reach)
    likely = [one for one in calm if _likely(one, mutant)]
    others = sorted((one for one in calm if one not in likely), key=lambda one: one.length)
    yield _round(DEFAULT, likely)
    if calm:
        yield _round(DEFAULT, [*likely[:1], *others[:_OTHERS], *_TOGETHER])


def promising(mutant: Mutant, reach: Reach) -> Iterator[Round]:
    """The rounds that may show a mutant, the quick ones first."""
    yield from quick(mutant, reach)
    yield from slow(mutant, reach)


def slow(mutant: Mutant, reach: Reach) -> Iterator[Round]:
    """What is likely to show it under other options, with restarts and by random requests."""
    calm = _reached(_SPOKEN, mutant, reach)
    for whole in WHOLE[1 : len(OPTIONS)]:
        if mutant.module in _UNDER[whole.options] and reach.gets_to(whole, mutant):
            spoken = [one for one in _first(_SPOKEN, mutant) if not calm or _likely(one, mutant)]
            yield _round(whole.options, [*spoken, *_ALWAYS])
    for entries in (_DISTURBING, _RANDOM):
        yield _round(DEFAULT, [one for one in _reached(entries, mutant, reach) if not calm or _likely(one, mutant)])
    if mutant.module in _TELLING:
        yield _round(SILENT, [one for one in calm if _likely(one, mutant)])
    if "ISOLATE-02" in mutant.named:
        yield Round(ONE_PERSON, ("ECHO-02",))


def _reached(entries: Sequence[Requirement], mutant: Mutant, reach: Reach) -> list[Requirement]:
    alone = {one.ids[0] for one in ALONE if reach.gets_to(one, mutant)}
    return [one for one in _first(entries, mutant) if one.id in alone]


def _round(options: str, entries: Sequence[Requirement]) -> Round:
    return Round(options, tuple(one.id for one in entries))


def everything(mutant: Mutant, reach: Reach) -> Iterator[Round]:
    """All rounds in which the changed lines run."""
    return (one for one in WHOLE if reach.gets_to(one, mutant))


def _first(entries: Sequence[Requirement], mutant: Mutant) -> list[Requirement]:
    return sorted(entries, key=lambda one: _likely(one, mutant), reverse=True)


def _likely(requirement: Requirement, mutant: Mutant) -> int:
    """The function names the requirement; or it is of the module's area."""
    return 2 * (requirement.id in mutant.named) + (requirement.area in _AREAS.get(mutant.module, ()))

"""The state machine: any order of operations, each written as a step by the oracle.

What is drawn are plain numbers; what they mean is decided here, from what there is at that moment. So a sequence is known without a server, leaving
numbers out gives a shorter one, and a sequence that fails is a scenario. The links of the OpenAPI document are rules here (`LINKS`), beside those
that no link can say.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from continuity_conformance.fuzz.sequence.oracle import ALICE, Line, Manner, Oracle, Response, Step

LINKS: Final[Mapping[str, str]] = {
    "ContinueSession": "go_on_by_id",
    "ContinueResponse": "go_on_by_response",
    "GetResponse": "look",
    "DeleteResponse": "lose_response",
    "GetSession": "look",
    "DeleteSession": "delete_session",
}
"""Which rule takes which link of the OpenAPI document."""
_STEPS: Final = 28
"""Long ones: of a thousand steps those in sequences of 28 find twice what those in sequences of 14 find."""
_MOVES: Final = 80
_NUMBERS: Final = 6
_RANGE: Final = 1 << 16
_LINES: Final = 2
"""What goes wrong goes wrong in the depth of a session: few of them, with many turns."""
_GONE: Final = {"status": 404}
_SELDOM: Final = 8
T = TypeVar("T")
Move = tuple[int, ...]
"""The numbers of one operation: which rule, and what it is done to. 0 is always the plainest choice."""
Moves = tuple[Move, ...]
Written = Step | str
"""A step as YAML has it; `restart` is a word alone."""
Operation = Callable[["Chance"], Written]
"""One thing that can be done now; how exactly is left to chance."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What the sequences may do: the target's options, what it offers and can be made to do, and who speaks."""

    options: Mapping[str, str]
    abilities: frozenset[str]
    principals: tuple[str, ...] = (ALICE,)
    slugs: bool = True


@dataclass(frozen=True, slots=True)
class Drawn:
    """A sequence: its moves, and the step that each of them came to."""

    moves: Moves
    steps: tuple[Written, ...]


def draw(reach: Reach, seed: int, number: int) -> Drawn:
    """One sequence of a seed."""
    chance = random.Random(f"{seed}/{number}")  # noqa: S311 - it is to be repeatable, not secret
    return sequence(reach, (tuple(chance.randrange(_RANGE) for _ in range(_NUMBERS)) for _ in range(_MOVES)))


def sequence(reach: Reach, moves: Iterable[Move]) -> Drawn:
    """What these moves come to. A move that is not possible where it stands is left out."""
    machine = Machine(reach)
    taken = [move for move in moves if len(machine.steps) < _STEPS and machine.move(Chance(move))]
    return Drawn(tuple(taken), tuple(machine.steps))


class Chance:
    """The numbers of a move, one for each choice; where they run out, the plainest choice."""

    def __init__(self, numbers: Move) -> None:
        self._numbers: Iterator[int] = iter(numbers)

    def one(self, among: Sequence[T]) -> T:
        """By its part of the whole, so that the choice stays the same, or nearly, where there is one less to choose from."""
        return among[next(self._numbers, 0) * len(among) // _RANGE]

    def seldom(self) -> bool:
        return self.one(range(_SELDOM)) == _SELDOM - 1


class Machine:
    """One sequence as it is written. A rule gives what it could do now, which may be nothing."""

    def __init__(self, reach: Reach) -> None:
        self.abilities = reach.abilities
        self.oracle = Oracle(reach.options)
        self.steps: list[Written] = []
        self._accepted: set[str] = set()
        self._principals = reach.principals
        self._tells = reach.options["tells"] != "nothing"
        self._takes_slugs = reach.slugs

    def move(self, chance: Chance) -> bool:
        """One operation of a rule that is drawn by weight; a start at first. Says whether there was one."""
        possible = chance.one(_WEIGHTED if self.steps else (Machine.start,))(self)
        if possible:
            step = chance.one(possible)(chance)
            self.steps.append(step)
            self._accepted.update(step if isinstance(step, dict) and step.get("expect") != _GONE else ())
        return bool(possible)

    # Turns

    def start(self) -> list[Operation]:
        """A conversation: by a slug that may have been used before, by header, without an id, of a fresh session."""
        return [operation for who in self._principals for operation in self._starts(who)]

    def _starts(self, who: str) -> list[Operation]:
        oracle, anyhow = self.oracle, self._manner(who=who)
        if sum(line.principal == who for line in oracle.lines) >= _LINES:
            return []
        ways = [_turn(partial(oracle.by_id, None), anyhow), _turn(partial(oracle.derived, (), None), anyhow)]
        slugs = [_turn(partial(oracle.by_slug, slug), anyhow) for slug in (None, *oracle.slugs, *oracle.slugs)]
        named = slugs if self._takes_slugs else []
        return [*named, *ways, _turn(oracle.fresh, anyhow)] if self._has("responses") else ways

    def go_on_by_id(self) -> list[Operation]:
        """By the tip, or by any id that the session had before."""
        return [_turn(partial(self.oracle.by_id, name), self._manner(line, keyed=True)) for line, name in self._named()]

    def go_on_by_slug(self) -> list[Operation]:
        return [
            _turn(partial(self.oracle.by_slug, name), self._manner(line, keyed=True, unstored=True))
            for line, name in self._slugs()
        ]

    def go_on_by_response(self) -> list[Operation]:
        return [self._following(response) for response in self._kept() if response.newest]

    def branch(self) -> list[Operation]:
        """From an older response."""
        return [self._following(response) for response in self._kept() if not response.newest]

    def derive_again(self) -> list[Operation]:
        """The same opening: alone, with a part of what was said since, or with all of it; by the same principal or another."""
        return [
            _turn(partial(self.oracle.derived, body, opening), self._manner(who=who))
            for opening, name in self.oracle.openings.items()
            for who in self._principals
            for body in _bodies(self.oracle.session(who, name), opening)
        ]

    def compress(self) -> list[Operation]:
        """A turn in which the session rotates, by any way that leads to it."""
        if not self._has("compress"):
            return []
        oracle = self.oracle
        ways: list[tuple[Line, Callable[[Manner], Step]]] = [
            *((line, partial(oracle.by_id, name)) for line, name in self._named()),
        ]
        if self._tells:  # else the kit cannot name the session to the control that compresses it
            ways += [(line, partial(oracle.by_slug, name)) for line, name in self._slugs()]
            ways += [(one.line, partial(oracle.follow, one)) for one in self._kept() if one.newest]
        return [_turn(way, self._manner(line, compress=True)) for line, way in ways]

    # What becomes of responses and sessions

    def lose_response(self) -> list[Operation]:
        """Deleted by its owner, or evicted; the control evicts alice's."""
        if not self._has("lose"):
            return []
        kept = self._kept()
        evicted = [one for one in kept if one.line.principal == ALICE and self._has("evict")]
        return [
            *(_plain(self.oracle.evict, one) for one in evicted),
            *(_plain(self.oracle.delete_response, one, one.line.principal) for one in kept),
        ]

    def delete_session(self) -> list[Operation]:
        if not self._has("lose", "sessions"):
            return []
        return [_plain(self.oracle.delete_session, name, line.principal) for line, name in self._named()]

    def look(self) -> list[Operation]:
        """Read what is there."""
        responses = [_plain(self.oracle.get_response, one, one.line.principal) for one in self._kept()]
        sessions = [_plain(self.oracle.get_session, name, line.principal) for line, name in self._named()]
        return [*responses, *(sessions if self._has("sessions") else [])]

    def trespass(self) -> list[Operation]:
        """Ask for what is gone or another's, which is as unknown as an id that never was.

        A refusal needs an accepted twin before it, or it would say nothing about its reason.
        """
        oracle, everyone = self.oracle, self._principals
        denied = [(one, who) for one in oracle.responses for who in everyone if not oracle.has(who, one)]
        unknown = [(name, who) for name in oracle.ids for who in everyone if not oracle.session(who, name)]
        turns = [_plain(oracle.by_id, name, Manner(who)) for name, who in unknown]
        turns += [_plain(oracle.follow, one, Manner(who)) for one, who in denied]
        reads = [_plain(oracle.get_response, *pair) for pair in denied]
        reads += [_plain(oracle.get_session, *pair) for pair in unknown if self._has("sessions")]
        deletes = [_plain(oracle.delete_response, *pair) for pair in denied]
        deletes += [_plain(oracle.delete_session, *pair) for pair in unknown if self._has("sessions")]
        return [
            *turns,
            *(reads if "get" in self._accepted else []),
            *(deletes if "delete" in self._accepted else []),
        ]

    def repeat(self) -> list[Operation]:
        """The same request under the same Idempotency-Key."""
        return [_plain(self.oracle.repeat, replay) for replay in self.oracle.repeatable()]

    def restart(self) -> list[Operation]:
        possible = self._has("restart") and self.steps and "restart" not in self.steps
        return [lambda _: "restart"] if possible else []

    # What there is to draw from

    def _has(self, *abilities: str) -> bool:
        return self.abilities.issuperset(abilities)

    def _named(self) -> list[tuple[Line, str]]:
        """Sessions, by every id that a client knows."""
        return [(line, name) for line in self.oracle.lines for name in line.ids if name in self.oracle.ids]

    def _slugs(self) -> list[tuple[Line, str]]:
        return [(line, name) for line in self.oracle.lines for name in line.slugs]

    def _kept(self) -> list[Response]:
        return [response for response in self.oracle.responses if not response.gone]

    def _following(self, response: Response) -> Operation:
        return _turn(partial(self.oracle.follow, response), self._manner(response.line, unstored=True))

    def _manner(
        self,
        line: Line | None = None,
        *,
        who: str = "",
        compress: bool = False,
        keyed: bool = False,
        unstored: bool = False,
    ) -> Callable[[Chance], Manner]:
        """How a turn is asked for: of this line, or by this principal, or by anybody."""
        principals = (line.principal,) if line is not None else (who,) if who else self._principals
        unstored = unstored and self._has("lose")
        keyed = keyed and self._has("lose", "idempotency")

        def drawn(chance: Chance) -> Manner:
            principal = chance.one(principals)
            stream = self._has("streaming") and chance.one((False, True))
            store = not (unstored and chance.seldom())
            key = self.oracle.new_name("k") if keyed and store and chance.seldom() else ""
            return Manner(principal, stream, compress, store, key)

        return drawn


def _turn(turn: Callable[[Manner], Step], manner: Callable[[Chance], Manner]) -> Operation:
    return lambda chance: turn(manner(chance))


def _plain(operation: Callable[..., Step], *operands: object) -> Operation:
    """An operation that leaves nothing more to chance."""
    return lambda _: operation(*operands)


def _bodies(line: Line | None, opening: str) -> list[tuple[str, ...]]:
    """The histories that a client without a header may send: once compressed, only the whole one; else any beginning of it."""
    labels = line.history.labels if line is not None else ()
    if line is None or labels[:1] != (opening,):
        return [()]
    return [labels[:length] for length in range(len(labels) + 1)] if line.history.exact else [labels]


_WEIGHTS: Final[Mapping[str, int]] = {
    "start": 2,
    "go_on_by_id": 3,
    "go_on_by_slug": 4,
    "go_on_by_response": 3,
    "branch": 4,
    "compress": 3,
    "lose_response": 4,
    "derive_again": 1,
    "delete_session": 1,
    "look": 1,
    "trespass": 1,
    "repeat": 1,
    "restart": 2,
}
_WEIGHTED: Final[tuple[Callable[[Machine], list[Operation]], ...]] = tuple(
    getattr(Machine, name) for name, weight in _WEIGHTS.items() for _ in range(weight)
)

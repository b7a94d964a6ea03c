"""Generate sequences: operations in any order, each written as a step by the oracle.

A sequence is drawn as plain numbers. This module decides what they mean, from the state at that moment. So a sequence
is known without a server, leaving numbers out gives a shorter sequence, and a failing sequence is a scenario. The links
of the OpenAPI document are rules here (`LINKS`), beside the rules that a link cannot express.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from continuity_conformance.fuzz.sequence.oracle import (
    ALICE,
    NOT_FOUND,
    Oracle,
    OracleResponse,
    SessionChain,
    StepDict,
    TurnOptions,
)

LINKS: Final[Mapping[str, str]] = {
    "ContinueSession": "continue_by_id",
    "ContinueResponse": "continue_by_response",
    "GetResponse": "read",
    "DeleteResponse": "lose_response",
    "GetSession": "read",
    "DeleteSession": "delete_session",
}
"""The rule for each link of the OpenAPI document."""
_MAX_STEPS: Final = 28
"""Long sequences: measured over a thousand steps, sequences of 28 find twice as much as sequences of 14."""
_MOVES: Final = 80
_NUMBERS: Final = 6
_RANGE: Final = 1 << 16
_MAX_CHAINS: Final = 2
"""Few sessions with many turns: bugs show in long sessions."""
_RARE: Final = 8
T = TypeVar("T")
Move = tuple[int, ...]
"""The numbers of one operation: which rule, and on what. 0 is always the simplest choice."""
Moves = tuple[Move, ...]
YamlStep = StepDict | str
"""A step as it is written in YAML; `restart` is a single word."""
Action = Callable[["Choices"], YamlStep]
"""One operation that is possible now. The choices decide its details."""


@dataclass(frozen=True, slots=True)
class SequenceScope:
    """What sequences may contain: the options of the target, what it offers and can be made to do, and who acts.

    `own_branches`: a branch has a session id of its own. `one_history`: chat continues a session of /v1/responses.
    """

    options: Mapping[str, str]
    abilities: frozenset[str]
    principals: tuple[str, ...] = (ALICE,)
    slugs: bool = True
    own_branches: bool = True
    one_history: bool = True


@dataclass(frozen=True, slots=True)
class GeneratedSequence:
    """A sequence: its moves, and the step of each move."""

    moves: Moves
    steps: tuple[YamlStep, ...]


def generate(scope: SequenceScope, seed: int, number: int) -> GeneratedSequence:
    """Generate the sequence with this number of a seed."""
    numbers = random.Random(f"{seed}/{number}")  # noqa: S311 - it must be repeatable, not secret
    return sequence_of(scope, (tuple(numbers.randrange(_RANGE) for _ in range(_NUMBERS)) for _ in range(_MOVES)))


def sequence_of(scope: SequenceScope, moves: Iterable[Move]) -> GeneratedSequence:
    """Return the sequence that these moves describe. A move that is not possible at its place is left out."""
    generator = SequenceGenerator(scope)
    taken = list[Move]()
    for move in moves:
        if generator.apply(Choices(move)):
            taken.append(move)
        if len(generator.steps) == _MAX_STEPS:
            break
    return GeneratedSequence(tuple(taken), tuple(generator.steps))


class Choices:
    """The numbers of a move, one for each choice. When they run out, the simplest choice is taken."""

    def __init__(self, numbers: Move) -> None:
        self._numbers: Iterator[int] = iter(numbers)

    def pick(self, candidates: Sequence[T]) -> T:
        """Pick by the fraction of the range, so that the pick hardly changes when there is one candidate less."""
        return candidates[next(self._numbers, 0) * len(candidates) // _RANGE]

    def rarely(self) -> bool:
        return self.pick(range(_RARE)) == _RARE - 1


class SequenceGenerator:
    """Builds one sequence. Each rule is a method that returns the actions that are possible now, if any."""

    def __init__(self, scope: SequenceScope) -> None:
        self.abilities = scope.abilities
        self.oracle = Oracle(scope.options, own_branches=scope.own_branches)
        self.steps: list[YamlStep] = []
        self._accepted_verbs: set[str] = set()
        self._principals = scope.principals
        self._reveals_ids = scope.options["tells"] != "nothing"
        self._takes_slugs = scope.slugs
        self._own_branches = scope.own_branches
        self._one_history = scope.one_history

    def apply(self, choices: Choices) -> bool:
        """Add one step by a rule that is picked by weight; the first step is a start. False if the rule has no action."""
        actions = choices.pick(_WEIGHTED_RULES if self.steps else (SequenceGenerator.start,))(self)
        if actions:
            step = choices.pick(actions)(choices)
            self.steps.append(step)
            self._accepted_verbs.update(step if isinstance(step, dict) and step.get("expect") != NOT_FOUND else ())
        return bool(actions)

    # Turns

    def start(self) -> list[Action]:
        """Start a conversation: by a slug that may be in use, by header, without an id, or in a new session."""
        return [action for principal in self._principals for action in self._starts(principal)]

    def _starts(self, principal: str) -> list[Action]:
        oracle, options = self.oracle, self._turn_options(principal=principal)
        if sum(chain.principal == principal for chain in oracle.chains) >= _MAX_CHAINS:
            return []
        chats = [
            _turn(partial(oracle.turn_by_id, None), options),
            _turn(partial(oracle.turn_without_id, (), None), options),
        ]
        by_slug = [_turn(partial(oracle.turn_by_slug, slug), options) for slug in (None, *oracle.slugs, *oracle.slugs)]
        slugs = by_slug if self._takes_slugs else []
        responses = [_turn(oracle.turn_in_new_session, options)]
        return [
            *(slugs if self._has("responses") else []),
            *(chats if self._has("chat") else []),
            *(responses if self._has("responses") else []),
        ]

    def continue_by_id(self) -> list[Action]:
        """By the tip, or by any earlier id of the session."""
        return [
            _turn(partial(self.oracle.turn_by_id, name), self._turn_options(chain, keyed=True))
            for chain, name in self._sessions_of_chat()
        ]

    def continue_by_slug(self) -> list[Action]:
        return [
            _turn(partial(self.oracle.turn_by_slug, name), self._turn_options(chain, keyed=True, unstored=True))
            for chain, name in self._sessions_by_slug()
        ]

    def continue_by_response(self) -> list[Action]:
        return [
            self._turn_after(response)
            for response in self._stored_responses()
            if response.newest and not self._shares_its_id(response.chain)
        ]

    def branch(self) -> list[Action]:
        """Continue from an older response."""
        return [self._turn_after(response) for response in self._stored_responses() if not response.newest]

    def derive_again(self) -> list[Action]:
        """Send the same opening again: alone, with some of the later turns, or with all; by any principal."""
        return [
            _turn(partial(self.oracle.turn_without_id, history, opening), self._turn_options(principal=principal))
            for opening, name in self.oracle.openings.items()
            for principal in self._principals
            for history in _sendable_histories(self.oracle.session(principal, name), opening)
        ]

    def compress(self) -> list[Action]:
        """A turn that rotates the session, addressed in any way."""
        if not self._has("compress"):
            return []
        oracle = self.oracle
        turns: list[tuple[SessionChain, Callable[[TurnOptions], StepDict]]] = [
            *((chain, partial(oracle.turn_by_id, name)) for chain, name in self._sessions_of_chat()),
        ]
        if self._reveals_ids:  # else the kit has no id of the session for the control that compresses it
            turns += [(chain, partial(oracle.turn_by_slug, name)) for chain, name in self._sessions_by_slug()]
            turns += [
                (response.chain, partial(oracle.turn_after_response, response))
                for response in self._stored_responses()
                if response.newest and response.chain.ids
            ]
        return [
            _turn(turn, self._turn_options(chain, compress=True))
            for chain, turn in turns
            if not self._shares_its_id(chain)
        ]

    # Reading and deleting responses and sessions

    def lose_response(self) -> list[Action]:
        """Evict a response, or delete it as its owner. The control evicts responses of alice only."""
        if not self._has("lose"):
            return []
        stored = self._stored_responses()
        evictable = [response for response in stored if response.chain.principal == ALICE and self._has("evict")]
        return [
            *(_fixed(self.oracle.evict, response) for response in evictable),
            *(
                _fixed(self.oracle.delete_response, response, response.chain.principal)
                for response in stored
                if self._has("stored-responses")
            ),
        ]

    def delete_session(self) -> list[Action]:
        if not self._has("lose", "sessions"):
            return []
        return [
            _fixed(self.oracle.delete_session, name, chain.principal)
            for chain, name in self._sessions_by_id()
            if not self._shares_its_id(chain)
        ]

    def read(self) -> list[Action]:
        """Read a stored response or session."""
        responses = [
            _fixed(self.oracle.get_response, response, response.chain.principal)
            for response in self._stored_responses()
        ]
        sessions = [_fixed(self.oracle.get_session, name, chain.principal) for chain, name in self._sessions_by_id()]
        return [
            *(responses if self._has("stored-responses") else []),
            *(sessions if self._has("sessions") else []),
        ]

    def use_unknown(self) -> list[Action]:
        """Use what is gone or belongs to another principal: it is as unknown as an id that never existed.

        A refused read or deletion needs an accepted one before it. Without one it shows nothing about its reason.
        """
        oracle, everyone = self.oracle, self._principals
        responses = [
            (response, principal)
            for response in oracle.responses
            for principal in everyone
            if not oracle.owns(principal, response)
        ]
        sessions = [
            (name, principal) for name in oracle.ids for principal in everyone if not oracle.session(principal, name)
        ]
        turns = [
            _fixed(oracle.turn_by_id, name, TurnOptions(principal)) for name, principal in sessions if self._has("chat")
        ]
        turns += [
            _fixed(oracle.turn_after_response, response, TurnOptions(principal)) for response, principal in responses
        ]
        stored = responses if self._has("stored-responses") else []
        reads = [_fixed(oracle.get_response, *pair) for pair in stored]
        reads += [_fixed(oracle.get_session, *pair) for pair in sessions if self._has("sessions")]
        deletions = [_fixed(oracle.delete_response, *pair) for pair in stored]
        deletions += [_fixed(oracle.delete_session, *pair) for pair in sessions if self._has("sessions")]
        return [
            *turns,
            *(reads if "get" in self._accepted_verbs else []),
            *(deletions if "delete" in self._accepted_verbs else []),
        ]

    def repeat(self) -> list[Action]:
        """Send the same request with the same Idempotency-Key again."""
        return [_fixed(self.oracle.repeat_turn, turn) for turn in self.oracle.repeatable_turns()]

    def restart(self) -> list[Action]:
        possible = self._has("restart") and self.steps and "restart" not in self.steps
        return [lambda _: "restart"] if possible else []

    # The candidates of the rules

    def _has(self, *abilities: str) -> bool:
        return self.abilities.issuperset(abilities)

    def _sessions_by_id(self) -> list[tuple[SessionChain, str]]:
        """Sessions, with every id that a client knows."""
        return [(chain, name) for chain in self.oracle.chains for name in chain.ids if name in self.oracle.ids]

    def _sessions_of_chat(self) -> list[tuple[SessionChain, str]]:
        """Sessions that a chat turn continues by their id."""
        return [
            (chain, name)
            for chain, name in self._sessions_by_id()
            if self._has("chat") and (self._one_history or chain.by_chat)
        ]

    def _shares_its_id(self, chain: SessionChain) -> bool:
        """Whether a branch has the same session id: the contract then leaves open what belongs to the session itself."""
        return chain.branched and not self._own_branches

    def _sessions_by_slug(self) -> list[tuple[SessionChain, str]]:
        return [(chain, name) for chain in self.oracle.chains for name in chain.slugs]

    def _stored_responses(self) -> list[OracleResponse]:
        return [response for response in self.oracle.responses if not response.gone]

    def _turn_after(self, response: OracleResponse) -> Action:
        return _turn(
            partial(self.oracle.turn_after_response, response), self._turn_options(response.chain, unstored=True)
        )

    def _turn_options(
        self,
        chain: SessionChain | None = None,
        *,
        principal: str = "",
        compress: bool = False,
        keyed: bool = False,
        unstored: bool = False,
    ) -> Callable[[Choices], TurnOptions]:
        """Return a function that chooses the options of a turn: by the owner of the chain, this principal, or anybody.

        `keyed` and `unstored`: the turn may have an Idempotency-Key, or may not be stored.
        """
        principals = (chain.principal,) if chain is not None else (principal,) if principal else self._principals
        unstored = unstored and self._has("lose")
        keyed = keyed and self._has("lose", "idempotency")

        def choose(choices: Choices) -> TurnOptions:
            chosen = choices.pick(principals)
            stream = self._has("streaming") and choices.pick((False, True))
            store = not (unstored and choices.rarely())
            key = self.oracle.new_name("k") if keyed and store and choices.rarely() else ""
            return TurnOptions(chosen, stream, compress, store, key)

        return choose


def _turn(turn: Callable[[TurnOptions], StepDict], options: Callable[[Choices], TurnOptions]) -> Action:
    return lambda choices: turn(options(choices))


def _fixed(operation: Callable[..., StepDict], *operands: object) -> Action:
    """An action that needs no further choice."""
    return lambda _: operation(*operands)


def _sendable_histories(chain: SessionChain | None, opening: str) -> list[tuple[str, ...]]:
    """The histories that a client without the header may send: any beginning, or only the whole one once compressed."""
    labels = chain.history.labels if chain is not None else ()
    if chain is None or labels[:1] != (opening,):
        return [()]
    return [labels[:length] for length in range(len(labels) + 1)] if chain.history.uncompressed else [labels]


_WEIGHTS: Final[Mapping[str, int]] = {
    "start": 2,
    "continue_by_id": 3,
    "continue_by_slug": 4,
    "continue_by_response": 3,
    "branch": 4,
    "compress": 3,
    "lose_response": 4,
    "derive_again": 1,
    "delete_session": 1,
    "read": 1,
    "use_unknown": 1,
    "repeat": 1,
    "restart": 2,
}
_WEIGHTED_RULES: Final[tuple[Callable[[SequenceGenerator], list[Action]], ...]] = tuple(
    getattr(SequenceGenerator, name) for name, weight in _WEIGHTS.items() for _ in range(weight)
)

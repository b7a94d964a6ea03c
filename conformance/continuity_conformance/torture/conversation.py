"""The conversations of a campaign: how each kind names its session, and what is known about it so far."""

import math
import random
import secrets
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Final

from continuity_conformance.http.messages import Answer, Request, dig
from continuity_conformance.http.reading import Reading
from continuity_conformance.probe.marks import user_text
from continuity_conformance.scenario.context import Context
from continuity_conformance.scenario.interventions import made_step
from continuity_conformance.scenario.request_builder import turn_request
from continuity_conformance.scenario.variables import Variables
from continuity_conformance.torture.audit.history import (
    FetchedResponse,
    History,
    Observation,
    SentTurn,
    TurnOutcome,
    WrongAnswer,
)

_MORE: Final = " And so it goes on."
_LONG_AGO: Final = 1_000
_VARIABLES: Final = Variables({}, {})


class ConversationKind(StrEnum):
    """How the turns of a conversation name it."""

    HEADER = "session in a header"
    NAMED = "session that the server named"
    SLUG = "slug"
    CHAIN = "previous_response_id"
    KEYED = "session with Idempotency-Key"
    KEYED_SLUG = "slug with Idempotency-Key"
    SHARED = "session that two clients share"
    SHARED_SLUG = "slug that two clients share"
    LONG = "session with long turns"
    OLD = "slug of an old database"


_BY_SLUG: Final = frozenset(
    {ConversationKind.SLUG, ConversationKind.KEYED_SLUG, ConversationKind.SHARED_SLUG, ConversationKind.OLD}
)
_KEYED: Final = frozenset({ConversationKind.KEYED, ConversationKind.KEYED_SLUG})
_COMPRESSIBLE: Final = frozenset({ConversationKind.HEADER, ConversationKind.SLUG, ConversationKind.LONG})


class Conversation:
    """One conversation. `turns` and `observations` grow; `history()` is what the audit gets."""

    def __init__(self, kind: ConversationKind, number: int, principal: str, name: str, chance: random.Random) -> None:
        self.kind = kind
        self.principal = principal
        self.name = f"{'conversation' if number > 0 else 'trial'} {abs(number)} ({kind}, {principal})"
        self._id = name
        self._told: list[str] = []
        self._previous: str | None = None
        self._turns: dict[str, SentTurn] = {}
        self._chance = chance
        self.observations: list[Observation] = []
        self.responses: list[FetchedResponse] = []
        self.wrong_answers: list[WrongAnswer] = []
        self.answered_response: tuple[str, str] | None = None
        self.unanswered_response: tuple[str, str] | None = None
        self.compressed = kind is ConversationKind.LONG
        self.stuck: tuple[float, str] | None = None
        self.last_response = 0
        """How many responses all clients together had when this conversation got its last one."""
        self.broken = False
        """A violation was found in it: nobody continues it."""

    @property
    def verb(self) -> str:
        return "respond" if self.kind in _BY_SLUG or self.kind is ConversationKind.CHAIN else "chat"

    @property
    def keyed(self) -> bool:
        return self.kind in _KEYED

    @property
    def length(self) -> int:
        return len(self._turns)

    @property
    def answered(self) -> int:
        return sum(turn.outcome is TurnOutcome.ANSWERED for turn in self._turns.values())

    @property
    def session(self) -> str:
        """The id that the target told last; empty if it told none."""
        return self._told[-1] if self._told else ""

    @property
    def may_compress(self) -> bool:
        return self.kind in _COMPRESSIBLE and bool(self._told) and self.answered > 1

    @property
    def is_lost_for_the_client(self) -> bool:
        """Nobody can continue a conversation that has no name yet: its first turn was not answered."""
        nameless = (self.kind is ConversationKind.NAMED and not self._told) or (
            self.kind is ConversationKind.CHAIN and self._previous is None
        )
        return nameless and bool(self._turns)

    def request(self, context: Context, mark: str, *, stream: bool, replica: int, characters: int = 0) -> Request:
        """The request of a turn."""
        text = _text(mark, characters if self.kind is ConversationKind.LONG else 0)
        content = {"input": text} if self.verb == "respond" else {"messages": [{"role": "user", "content": text}]}
        key = {"idempotency_key": f"key-{mark}"} if self.keyed else {}
        params = {"stream": stream, "as": self.principal, "server": replica, **self._names(), **key}
        return turn_request(context, _VARIABLES, made_step(self.verb, params), content)

    def _names(self) -> Mapping[str, object]:
        if self.kind in _BY_SLUG:
            return {"conversation": self._id}
        if self.kind is ConversationKind.CHAIN:
            return {"previous_response_id": self._previous} if self._previous else {}
        if self.kind is ConversationKind.NAMED:
            return {"session": self._told[-1]} if self._told else {}
        # A session that rotated has several ids, and all of them lead to its newest turn.
        return {"session": self._chance.choice([self._id, *self._told])}

    def rename(self, name: str) -> None:
        """Use the name that the target made."""
        self._id = name

    def begin(self, mark: str, now: float) -> None:
        """A turn is sent, or sent again."""
        known = self._turns.get(mark)
        self._turns[mark] = replace(known, sends=known.sends + 1) if known else SentTurn(mark, now)

    def answer(self, mark: str, now: float, reading: Reading, session: str) -> None:
        """A turn was answered."""
        self._end(mark, now, TurnOutcome.ANSWERED, "")
        if session and session not in self._told:
            self._told.append(session)
        if self.verb == "respond" and reading.id:
            self._previous = reading.id
            self.answered_response = (mark, reading.id)
            self.unanswered_response = None

    def refuse(self, mark: str, now: float, status: str) -> None:
        self._end(mark, now, TurnOutcome.REFUSED, status)

    def lose(self, mark: str, now: float, answer: Answer) -> None:
        """No complete answer came. The turn has ended if a complete refusal came; else it may go on until its process ends."""
        complete = answer.status and not answer.error
        self._end(mark, now if complete else math.inf, TurnOutcome.UNANSWERED, answer.error or str(answer.outcome))
        ids = (dig(event, "response", "id") for event in answer.events)
        known = next((each for each in ids if isinstance(each, str)), None)
        self.unanswered_response = (mark, known) if known else None

    def processes_ended(self, now: float) -> None:
        """All processes that could still be busy with unanswered turns have ended."""
        for mark, turn in self._turns.items():
            if turn.ended == math.inf and turn.status:
                self._turns[mark] = replace(turn, ended=now)

    def remember(self, mark: str) -> None:
        """A turn that was made up for an old database, and counts as answered before the campaign."""
        at = float(self.length - _LONG_AGO)
        self._turns[mark] = SentTurn(mark, at, at + 0.5, TurnOutcome.ANSWERED)

    def _end(self, mark: str, ended: float, outcome: TurnOutcome, status: str) -> None:
        may_stay = self.kind is not ConversationKind.CHAIN
        self._turns[mark] = replace(self._turns[mark], ended=ended, outcome=outcome, status=status, may_stay=may_stay)

    def history(self) -> History:
        return History(
            self.name,
            self.kind,
            tuple(self._turns.values()),
            tuple(self.observations),
            tuple(self.responses),
            tuple(self.wrong_answers),
            self.compressed,
            self.stuck,
        )


def kinds_of(context: Context) -> tuple[ConversationKind, ...]:
    """The kinds that the target offers."""
    target = context.target
    chat, responses = "chat" in target.offers and target.names_sessions, "responses" in target.offers
    keys = "idempotency" in target.offers
    offered = {
        ConversationKind.HEADER: chat,
        ConversationKind.NAMED: chat and target.options["tells"] != "nothing",
        ConversationKind.SLUG: target.takes_slugs,
        ConversationKind.CHAIN: responses,
        ConversationKind.KEYED: chat and keys,
        ConversationKind.KEYED_SLUG: target.takes_slugs and keys,
    }
    return tuple(kind for kind, is_offered in offered.items() if is_offered)


def shared_kinds(context: Context) -> tuple[ConversationKind, ...]:
    """The kinds that two clients can share."""
    kinds = kinds_of(context)
    shared = {ConversationKind.HEADER: ConversationKind.SHARED, ConversationKind.SLUG: ConversationKind.SHARED_SLUG}
    return tuple(shared[kind] for kind in kinds if kind in shared)


def new_name(context: Context) -> str:
    """A new id of a session, or a slug, in the form that the target demands."""
    form = context.target.profile.ids
    return form.id_of(secrets.token_hex(16)) if form is not None else f"torture-{secrets.token_hex(8)}"


def _text(mark: str, characters: int) -> str:
    text = user_text(mark, "torture")
    more = characters - len(text)
    return text + (_MORE * (more // len(_MORE) + 1))[:more] if more > 0 else text

"""The audit of a crash campaign: an honest history has no violation, and each kind of violation is found in a history that has it."""

import itertools
import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from continuity_conformance.torture.audit.checker import audit
from continuity_conformance.torture.audit.history import (
    MEANINGS,
    OF_THE_MESSAGES,
    OF_THE_MODEL,
    REQUIREMENTS,
    FetchedResponse,
    History,
    Observation,
    SentTurn,
    TurnOutcome,
    Violation,
    WrongAnswer,
)

A, B, C, X, FOREIGN = "aaaaaaaa", "bbbbbbbb", "cccccccc", "eeeeeeee", "ffffffff"
OWNERS = {FOREIGN: "conversation 2"}


def turn(mark: str, sent: float, outcome: TurnOutcome = TurnOutcome.ANSWERED, **more: object) -> SentTurn:
    return replace(SentTurn(mark, sent, sent + 0.5, outcome), **more)


def saw(by: str, at: float, *seen: str, **more: object) -> Observation:
    """What the model saw in the turn `by`, which was sent half a second before."""
    return replace(Observation(OF_THE_MODEL, at - 0.5, at, (*seen, by), by), **more)


def history(turns: list[SentTurn], observations: list[Observation], **more: object) -> History:
    return replace(History("conversation 1", "slug", tuple(turns), tuple(observations)), **more)


def found(checked: History, asked: dict[str, int] | None = None) -> list[Violation]:
    return [finding.violation for finding in audit(checked, asked or {}, OWNERS)]


TWO = [turn(A, 1), turn(B, 2)]
KILLED = [turn(A, 1), turn(X, 2, TurnOutcome.UNANSWERED, status="a lost connection"), turn(B, 4)]
THREE = [turn(A, 1), turn(X, 2, TurnOutcome.UNANSWERED), turn(B, 4), turn(C, 5)]

HONEST = {
    "plain turns": history(TWO, [saw(A, 1.5), saw(B, 2.5, A)]),
    "an unanswered turn that is there": history(KILLED, [saw(A, 1.5), saw(B, 4.5, A, X)]),
    "an unanswered turn that is not there": history(KILLED, [saw(A, 1.5), saw(B, 4.5, A)]),
    "two turns at once, in either order": history(
        [turn(A, 1, ended=3.0), turn(B, 1.1, ended=3.1), turn(C, 4)], [saw(A, 3.0, B), saw(C, 4.5, B, A)]
    ),
    "a summary": history([*TWO, turn(C, 3)], [saw(C, 3.5, B, summarised=frozenset({A}))], compressed=True),
    "a rotated session": history(TWO, [saw(A, 1.5, session="s1"), saw(B, 2.5, A, session="s2")], compressed=True),
    "a part of a turn whose whole is in the summary": history(
        TWO, [saw(B, 2.5, f"answer to {A} (no question)", summarised=frozenset({A}))], compressed=True
    ),
    "a branch after an unanswered turn": history(
        [turn(A, 1), turn(X, 2, TurnOutcome.UNANSWERED, may_stay=False), turn(B, 4)],
        [saw(A, 1.5, session="s1"), saw(B, 4.5, A, session="s2")],
    ),
    "a lost turn that goes on after it was looked for": history(
        [turn(A, 1), turn(X, 2, TurnOutcome.UNANSWERED, ended=math.inf), turn(B, 4), turn(C, 5)],
        [saw(B, 4.5, A), saw(C, 5.5, A, B, X)],
    ),
    "a keyed turn that was sent twice": history([turn(A, 1, sends=2)], [saw(A, 1.5)]),
    "an unanswered turn whose response and words are there": history(
        KILLED, [saw(B, 4.5, A, X)], responses=(FetchedResponse(X, 3.0, there=True),)
    ),
    "stored messages": history(TWO, [Observation(OF_THE_MESSAGES, 3, 3.1, (A, B))]),
}

DEFECTIVE = {
    "an answered turn is gone": (Violation.LOST, history(TWO, [saw(A, 1.5), saw(B, 2.5)])),
    "an answered turn is gone from the stored messages": (
        Violation.LOST,
        history(TWO, [Observation(OF_THE_MESSAGES, 3, 3.1, (A,))]),
    ),
    "an unanswered turn was there and is gone": (
        Violation.LOST,
        history(THREE, [saw(B, 4.5, A, X), saw(C, 5.5, A, B)]),
    ),
    "the model did not see the turn": (Violation.LOST, history(TWO, [replace(saw(B, 2.5, A), seen=(A,))])),
    "an answered response is gone": (
        Violation.LOST,
        history(TWO, [saw(B, 2.5, A)], responses=(FetchedResponse(A, 3.0, there=False),)),
    ),
    "a turn is there twice": (Violation.DOUBLED, history(TWO, [saw(B, 2.5, A, A)])),
    "turns changed places": (Violation.REORDERED, history([*TWO, turn(C, 3)], [saw(C, 3.5, B, A)])),
    "a question without an answer": (Violation.PARTIAL, history(KILLED, [saw(B, 4.5, A, f"{X} (no answer)")])),
    "an answer without a question": (
        Violation.PARTIAL,
        history(KILLED, [saw(B, 4.5, A, f"answer to {X} (no question)")]),
    ),
    "a response without its turn": (
        Violation.PARTIAL,
        history(KILLED, [saw(B, 4.5, A)], responses=(FetchedResponse(X, 3.0, there=True),)),
    ),
    "a turn of another conversation": (Violation.FOREIGN, history(TWO, [saw(B, 2.5, A, FOREIGN)])),
    "a turn of another branch": (
        Violation.FOREIGN,
        history([turn(A, 1), turn(X, 2, TurnOutcome.UNANSWERED, may_stay=False), turn(B, 4)], [saw(B, 4.5, A, X)]),
    ),
    "an answer to another turn": (
        Violation.FOREIGN,
        history(TWO, [], wrong_answers=(WrongAnswer(B, 2.5, "to the turn of somebody else"),)),
    ),
    "another session": (
        Violation.FORKED,
        history(TWO, [saw(A, 1.5, session="s1"), saw(B, 2.5, A, session="s2")]),
    ),
    "two lists": (
        Violation.FORKED,
        history([turn(A, 1, ended=9.0), turn(B, 1, ended=9.0)], [saw(A, 9.0), saw(B, 9.0)]),
    ),
    "an unanswered turn appears later": (Violation.REVIVED, history(THREE, [saw(B, 4.5, A), saw(C, 5.5, A, B, X)])),
    "a refused turn is stored": (
        Violation.REFUSED_STORED,
        history([turn(A, 1), turn(X, 2, TurnOutcome.REFUSED), turn(B, 3)], [saw(B, 3.5, A, X)]),
    ),
    "a conversation is stuck": (Violation.STUCK, history(TWO, [saw(B, 2.5, A)], stuck=(9.0, "404 session_not_found"))),
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_history_has_no_violation(name):
    assert found(HONEST[name]) == []


@pytest.mark.parametrize("name", DEFECTIVE)
def test_a_defective_history_has_its_violation(name):
    violation, checked = DEFECTIVE[name]

    assert violation in found(checked)


def test_a_turn_that_the_model_was_asked_for_again():
    assert found(HONEST["plain turns"], {A: 2, B: 1}) == [Violation.RERAN]
    assert found(HONEST["a keyed turn that was sent twice"], {A: 2}) == []


def test_every_kind_of_violation_is_tested_and_explained():
    """A target that does not start is found by the campaign itself."""
    tested = {violation for violation, _ in DEFECTIVE.values()} | {Violation.RERAN, Violation.NOT_STARTED}

    assert tested == set(Violation) == set(MEANINGS) == set(REQUIREMENTS)


def simulated(seed: int) -> tuple[History, list[str]]:
    """An honest server with one conversation: turns of two clients, some unanswered, stored or not. Also the list that it has at the end."""
    chance, stored, turns, observations, now = random.Random(seed), [], [], [], 0.0
    for number in range(chance.randint(1, 12)):
        now += 1
        mark, answered = f"{number:08x}", chance.random() < 0.7
        sent, ended = now - chance.choice([0.0, 1.4]), now + 0.5  # some begin while the one before goes on
        if answered:
            observations.append(Observation(OF_THE_MODEL, sent, ended, (*stored, mark), mark, session="s"))
        if answered or chance.random() < 0.4:
            stored.append(mark)
        turns.append(SentTurn(mark, sent, ended, TurnOutcome.ANSWERED if answered else TurnOutcome.UNANSWERED))
        if chance.random() < 0.2:
            observations.append(Observation(OF_THE_MESSAGES, now + 0.6, now + 0.6, tuple(stored)))
    return history(turns, observations), stored


@given(st.integers(min_value=0))
def test_what_an_honest_server_does_is_no_violation(seed):
    checked, stored = simulated(seed)
    last = Observation(OF_THE_MESSAGES, 99, 99, tuple(stored))

    assert found(replace(checked, observations=(*checked.observations, last))) == []


@given(st.integers(min_value=0), st.data())
def test_a_change_of_what_is_stored_at_the_end_is_a_violation(seed, data):
    """Whichever answered turn is dropped, doubled, cut or moved behind a later one."""
    checked, stored = simulated(seed)
    answered = [each.mark for each in checked.turns if each.outcome is TurnOutcome.ANSWERED]
    if not answered:
        return
    mark = data.draw(st.sampled_from(answered))
    place, change = stored.index(mark), data.draw(st.sampled_from(["drop", "double", "cut", "foreign"]))
    changed = {
        "drop": [*stored[:place], *stored[place + 1 :]],
        "double": [*stored, mark],
        "cut": [*stored[:place], f"{mark} (no answer)", *stored[place + 1 :]],
        "foreign": [*stored[:place], FOREIGN, *stored[place:]],
    }[change]
    last = Observation(OF_THE_MESSAGES, 99, 99, tuple(changed))

    expected = {
        "drop": Violation.LOST,
        "double": Violation.DOUBLED,
        "cut": Violation.PARTIAL,
        "foreign": Violation.FOREIGN,
    }
    assert expected[change] in found(replace(checked, observations=(*checked.observations, last)))


@given(st.integers(min_value=0))
def test_an_answered_turn_behind_one_that_was_sent_after_it_is_a_violation(seed):
    checked, stored = simulated(seed)
    turns = {each.mark: each for each in checked.turns}
    pairs = [
        k
        for k, (one, two) in enumerate(itertools.pairwise(stored))
        if turns[one].outcome is TurnOutcome.ANSWERED and turns[one].ended <= turns[two].sent
    ]
    for k in pairs:
        moved = [*stored[:k], stored[k + 1], stored[k], *stored[k + 2 :]]
        last = Observation(OF_THE_MESSAGES, 99, 99, tuple(moved))
        assert found(replace(checked, observations=(*checked.observations, last)))

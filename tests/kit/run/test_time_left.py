"""After a quarter of a run, the time left is right within a factor of two.

`recorded_runs` has runs on the bundled server, made slow in several ways (`python tools/work.py --record`). They are played back; what a play has done
at a moment is interpolated between its begin and its end.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from continuity_conformance.core.work import Count, Work, counted_in, current_work
from continuity_conformance.run.applicability import scenarios
from continuity_conformance.run.player import Group, PlayLog, ScenarioPlay, group_of, noted
from continuity_conformance.terminal.time_left import Expected, TimeLeft, read
from continuity_spec import load_spec

SPEC = load_spec()
PLAYED = {each.id for each in SPEC.requirements if each.how in {"scenario", "check"}}
FILES = sorted(Path(__file__).parent.glob("recorded_runs/*.json"))
RUNS: dict[str, dict[str, Any]] = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in FILES}
KINDS = ("turns", "others", "starts")
BEGAN = 1000.0
AT_THE_END = 0.04
"""A part of the whole run: when so little is left, one play that is longer than usual is most of it."""


def play_at(now: float, line: str, takes: dict[str, float]) -> ScenarioPlay:
    requirement, group, began, ended, *numbers = line.split()
    since, until, planned = float(began), float(ended), int(numbers.pop())
    share = min(1.0, max(0.0, (now - since) / (until - since))) if until > since else float(now >= until)
    done = {kind: int(int(number) * share) for kind, number in zip(KINDS, numbers, strict=True)}
    has_begun = now >= since and any(map(int, numbers))
    counts = [Count(number, number * takes[kind]) for kind, number in done.items()]
    phase = (BEGAN + since, 0) if group == "sequences" and has_begun else None
    work = Work(*counts, began=BEGAN + since if has_begun else None, planned=planned, placed=has_begun, phase=phase)
    return ScenarioPlay(requirement, Group(group.replace("_", " ")), work, BEGAN + until if now >= until else None)


def told(run: dict[str, Any], now: float) -> float:
    """The estimate after so many seconds of a run."""
    log = PlayLog(run["examples"], run["at_once"])
    log.before = Work(*(Count(*run["before"][kind]) for kind in KINDS))
    for line in run["plays"]:
        log.add(play_at(now, line, run["takes"]))
    return TimeLeft(log).seconds(BEGAN + now) or 0.0


@pytest.mark.parametrize("percent", range(25, 96, 5))
@pytest.mark.parametrize("name", RUNS)
def test_a_recorded_run_is_foreseen(name, percent):
    run = RUNS[name]
    now = run["seconds"] * percent / 100
    left, estimate = run["seconds"] - now, told(run, now)

    assert left / 2 < estimate < left * 2 or abs(estimate - left) < AT_THE_END * run["seconds"]


def test_the_recorded_runs_are_of_several_kinds():
    assert {"fast", "slow_turns", "slow_starts", "many_failures", "fewer_offers", "no_process"} <= RUNS.keys()


def a_log(group: Group, waiting: int, *played: Work) -> PlayLog:
    """Some plays that took a second each, one after the other, and some that wait."""
    log = PlayLog()
    log.before = Work(turns=Count(2, 2.0))
    for number, work in enumerate(played):
        work.began = BEGAN + number
        log.add(ScenarioPlay("X-01", group, work, BEGAN + number + 1))
    for _ in range(waiting):
        log.add(ScenarioPlay("X-01", group))
    return log


def test_nothing_is_foreseen_before_anything_was_done():
    assert TimeLeft(a_log(Group.CALM, 5)).seconds(BEGAN) is None


def test_what_waits_takes_as_long_as_what_was_played():
    expected = {("X-01", "calm"): Expected(1, 0, 0, 1)}
    log = a_log(Group.CALM, 6, Work(turns=Count(1, 1.0)), Work(turns=Count(1, 1.0)))

    assert TimeLeft(log, expected).seconds(BEGAN + 2) == pytest.approx(6)


def test_the_starts_of_servers_have_a_clock_of_their_own():
    """The calm plays are nearly over. What is left are starts, each as long as twenty turns."""
    expected = {("X-01", "calm"): Expected(1, 0, 0, 1), ("X-02", "alone"): Expected(1, 0, 2, 1)}
    log = a_log(Group.CALM, 0, *(Work(turns=Count(1, 1.0)) for _ in range(41)))
    log.add(ScenarioPlay("X-02", Group.ALONE, Work(Count(1, 1.0), starts=Count(2, 40.0), began=BEGAN), BEGAN + 41))
    log.add(ScenarioPlay("X-02", Group.ALONE))

    assert TimeLeft(log, expected).seconds(BEGAN + 41) == pytest.approx(41)


def test_a_target_that_the_kit_does_not_start_has_the_disturbing_plays_at_the_end():
    expected = {("X-01", "calm"): Expected(1, 0, 0, 1), ("X-02", "alone"): Expected(3, 0, 0, 1)}
    log = a_log(Group.CALM, 2, Work(turns=Count(1, 1.0)), Work(turns=Count(1, 1.0)))
    for _ in range(4):
        log.add(ScenarioPlay("X-02", Group.AFTER))

    assert TimeLeft(log, expected).seconds(BEGAN + 2) == pytest.approx(2 + 4 * 3)


def test_a_play_that_is_longer_than_all_others_is_judged_by_its_own_pace():
    expected = {("X-01", "calm"): Expected(1, 0, 0, 1), ("X-03", "campaign"): Expected(100, 0, 0, 1)}
    log = a_log(Group.CALM, 0, *(Work(turns=Count(1, 1.0)) for _ in range(50)))
    log.add(ScenarioPlay("X-03", Group.CAMPAIGN, Work(turns=Count(50, 50.0), began=BEGAN, planned=200)))

    assert TimeLeft(log, expected).seconds(BEGAN + 50) == pytest.approx(150)


def test_the_work_of_a_play_is_counted_where_it_was_opened():
    log = PlayLog()
    calm, other = (log.add(ScenarioPlay("X-01", Group.CALM)) for _ in range(2))

    async def turn() -> None:
        current_work().turns.add(0.1)

    async def both() -> None:
        await asyncio.gather(noted(calm, turn()), noted(other, asyncio.sleep(0)), turn())

    asyncio.run(both())
    assert [calm.work.requests, other.work.requests] == [1, 0]
    assert calm.ended is not None
    with counted_in(calm.work):
        current_work().others.add(0.1)
    assert calm.work.requests == 2


def test_what_a_check_plans_anew_has_a_pace_of_its_own():
    """Sequences are played side by side, and quickly; a failing one is then made smaller, one play after the other."""
    work = Work(turns=Count(500, 500.0), began=BEGAN, phase=(BEGAN + 50, 500))
    work.plan(100)
    unknown = work.phase_seconds(BEGAN + 51)
    work.turns.number += 10

    assert unknown is None
    assert work.phase_seconds(BEGAN + 70) == pytest.approx(2 * 90)


def test_sequences_that_ended_at_once_say_how_long_the_others_take():
    expected = {("X-01", "calm"): Expected(1, 0, 0, 1), ("X-04", "sequences"): Expected(100, 0, 0, 1)}
    log = a_log(Group.CALM, 0, *(Work(turns=Count(1, 1.0)) for _ in range(20)))
    waiting = log.add(ScenarioPlay("X-04", Group.SEQUENCES, Work(planned=100)))
    before = TimeLeft(log, expected).seconds(BEGAN + 20)
    first = Work(turns=Count(10, 10.0), began=BEGAN + 10, planned=10, placed=True)
    log.add(ScenarioPlay("X-04", Group.SEQUENCES, first, BEGAN + 20))

    assert waiting.work.planned == 100
    assert before == pytest.approx(100)
    assert TimeLeft(log, expected).seconds(BEGAN + 20) < 20


def test_what_was_planned_begins_when_it_has_its_place():
    work = Work(began=1.0)
    work.begin_planned()
    began = work.began
    work.begin_planned()

    assert began != 1.0
    assert work.began == began


def test_the_work_of_nearly_every_requirement_is_known():
    measured = {id_ for id_, _ in read()}

    assert len(measured & PLAYED) > 0.9 * len(PLAYED)
    assert {group for _, group in read()} <= set(Group)


@pytest.mark.parametrize(
    ("requirement", "started", "group"),
    [
        ("HISTORY-01", True, Group.CALM),
        ("CONTRACT-01", True, Group.CAMPAIGN),
        ("CONTRACT-06", True, Group.PROPERTIES),
        ("CONTRACT-20", True, Group.SEQUENCES),
        ("CONTRACT-23", True, Group.RESTARTED_SEQUENCES),
        ("DURABLE-01", True, Group.RESTARTED),
        ("DURABLE-02", True, Group.ALONE),
        ("HISTORY-05", False, Group.AFTER),
        ("DISCOVER-02", False, Group.LAST),
    ],
)
def test_each_scenario_is_in_the_group_in_which_it_plays(requirement, started, group):
    entry = SPEC.requirement(requirement)

    assert group_of(entry, scenarios(entry)[0], started=started) is group

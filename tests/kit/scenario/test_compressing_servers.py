"""Servers that compress in many honest ways meet the class Compression, and each of them broken in one way does not.

The servers are those of `tests/servers/compressing.py`.
"""

import sys
from pathlib import Path

import pytest

from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.plugin import Filling, Process, Profile
from continuity_conformance.run.session import Run
from continuity_conformance.target.resolve import resolve
from continuity_spec import Requirement, load_spec

SERVER = Path(__file__).parents[2] / "servers" / "compressing.py"
KEYS = {"alice": "key-of-alice-0123456789", "bob": "key-of-bob-0123456789"}
OFFERS = frozenset({"responses", "stored-responses", "streaming", "compression", "sessions"})
OPTIONS = {"derivation": "none", "degraded": "refuse", "environment": "none"}
CLASS = tuple(each.id for each in load_spec().requirements if each.class_name == "Compression")
UNREADABLE = "the target writes its summary itself, without the model"
DID_NOT = "the target did not compress"


def profile_of(arguments: str, compaction: str = "", filling: Filling | None = None) -> Profile:
    words = arguments.split()
    rotates = "--compaction=rotate" in words
    echo = "alias" if "--echo=alias" in words else "tip"
    options = {**OPTIONS, "compaction": compaction or ("rotate" if rotates else "in-place"), "echo": echo}
    start = (sys.executable, str(SERVER), "--port={port}", "--model={probe}", "--folder={folder}", *words)
    token = "" if filling else "token-of-the-controls"
    return Profile(
        "compressing",
        principals=KEYS,
        options=options,
        offers=OFFERS,
        token=token,
        process=Process(start),
        filling=filling,
    )


def results(profile: Profile, *ids: str) -> dict[str, Result]:
    requirements: list[Requirement] = [each for each in load_spec().requirements if each.id in (ids or CLASS)]
    with Run(resolve(None, profile), requirements) as run:
        return {each.id: run.result(each.id) for each in requirements}


def others(results: dict[str, Result]) -> dict[str, tuple[Verdict, str]]:
    """What neither passes nor is about something else."""
    fine = (Verdict.PASS, Verdict.NOT_APPLICABLE)
    return {name: (each.verdict, each.reason) for name, each in results.items() if each.verdict not in fine}


def of_verdict(results: dict[str, Result], verdict: Verdict) -> set[str]:
    return {name for name, each in results.items() if each.verdict is verdict}


IN_PLACE = {"COMPRESS-10", "COMPRESS-12", "COMPRESS-14", "COMPRESS-17", "SLUG-11"}


@pytest.mark.parametrize(
    "arguments",
    [
        "--place=system --ask=end",
        "--place=user --ask=begin --when=after",
        "--place=assistant --ask=transcript",
        "--place=system --ask=transcript --prompt --reminder",
        "--place=user --ask=end --prompt --titles",
        "--ask=turn --prompt",
        "--ask=after-turn --reminder --titles",
        "--failure=refuse --ask=begin",
        "--by=opaque",
    ],
)
def test_a_summary_that_stands_anywhere_is_understood(arguments: str):
    played = results(profile_of(arguments))

    assert others(played) == {}
    assert of_verdict(played, Verdict.PASS) == IN_PLACE


@pytest.mark.parametrize(
    "arguments",
    [
        "--compaction=rotate --place=system --ask=transcript --prompt",
        "--compaction=rotate --place=user --echo=alias --reminder",
        "--compaction=rotate --place=assistant --ask=begin --when=after",
    ],
)
def test_a_rotating_server_is_understood_too(arguments: str):
    played = results(profile_of(arguments))

    assert others(played) == {}
    assert {"COMPRESS-02", "COMPRESS-04", "COMPRESS-09", "COMPRESS-12"} <= of_verdict(played, Verdict.PASS)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_summary_by_the_server_that_quotes_the_turns_is_read(when: str):
    played = results(profile_of(f"--by=quotes --when={when}"))

    assert others(played) == {
        "COMPRESS-12": (Verdict.NOT_TESTED, "the model got no summarising call, so none could fail")
    }
    assert of_verdict(played, Verdict.PASS) == IN_PLACE - {"COMPRESS-12"}


def test_a_summary_by_the_server_in_its_own_words_is_not_judged():
    played = results(profile_of("--by=server"), "COMPRESS-14", "COMPRESS-17", "SLUG-11")

    assert {each.verdict for each in played.values()} == {Verdict.NOT_TESTED}
    assert all(each.reason.startswith(UNREADABLE) for each in played.values())


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_server_that_declares_to_drop_the_oldest_turns_may_do_so(when: str):
    played = results(profile_of(f"--by=truncation --when={when}", "truncate"))

    assert others(played) == {}
    assert of_verdict(played, Verdict.PASS) == IN_PLACE - {"COMPRESS-12"}


def test_a_window_of_turns_is_declared_by_their_number():
    played = results(
        profile_of("--window=6", "truncate", Filling(turns=5)), "COMPRESS-14", "COMPRESS-17", "HISTORY-02", "SLUG-10"
    )

    assert of_verdict(played, Verdict.PASS) == {"COMPRESS-14", "COMPRESS-17", "HISTORY-02", "SLUG-10"}


@pytest.mark.parametrize(
    ("arguments", "compaction", "fails"),
    [
        ("--defect=no-summary", "", "COMPRESS-14"),
        ("--defect=no-summary --place=user --ask=begin", "", "COMPRESS-14"),
        ("--defect=no-summary --place=assistant --ask=transcript --prompt --reminder", "", "COMPRESS-14"),
        ("--defect=forgets-summaries --ask=transcript", "", "COMPRESS-14"),
        ("--defect=forgets-summaries --compaction=rotate --place=user", "", "COMPRESS-04"),
        ("--defect=forgets-summaries --compaction=rotate --when=after --ask=begin", "", "COMPRESS-04"),
        ("--defect=keeps-all --ask=begin --prompt", "", "COMPRESS-14"),
        ("--defect=keeps-all --ask=turn --when=before", "", "COMPRESS-14"),
        ("--defect=changes-id --ask=after-turn", "", "COMPRESS-14"),
        ("--defect=changes-id --titles --prompt", "", "COMPRESS-14"),
        ("--defect=loses-turn --compaction=rotate --echo=alias", "", "COMPRESS-09"),
        ("--defect=failed-summary-drops", "", "COMPRESS-12"),
        ("--defect=failed-summary-drops --failure=refuse --ask=begin", "", "COMPRESS-12"),
        ("--by=opaque --defect=changes-id", "", "COMPRESS-14"),
        ("--by=quotes --defect=changes-id", "", "COMPRESS-14"),
        ("--by=quotes --defect=loses-turn --compaction=rotate", "", "COMPRESS-09"),
        ("--by=server --defect=changes-id", "", "COMPRESS-14"),
        ("--by=truncation --defect=changes-id", "truncate", "COMPRESS-14"),
        ("--by=truncation", "", "COMPRESS-14"),
        ("--by=truncation", "", "COMPRESS-17"),
    ],
)
def test_a_broken_one_fails(arguments: str, compaction: str, fails: str):
    assert results(profile_of(arguments, compaction), fails)[fails].verdict is Verdict.FAIL


@pytest.mark.parametrize("compaction", ["in-place", "truncate"])
def test_a_server_that_drops_turns_before_its_context_is_full_fails(compaction: str):
    """Whoever declares to truncate says when: a small conversation is kept whole."""
    filling = Filling(turns=5, characters=3000)
    played = results(profile_of("--window=4", compaction, filling), "HISTORY-02")

    assert played["HISTORY-02"].verdict is Verdict.FAIL


def test_a_server_that_drops_more_turns_than_it_declares_fails():
    played = results(profile_of("--window=2", "truncate", Filling(turns=5)), "HISTORY-02")

    assert played["HISTORY-02"].verdict is Verdict.FAIL


def test_a_server_that_drops_newer_turns_fails_although_it_declares_to_truncate():
    played = results(profile_of("--by=truncation --defect=drops-silently", "truncate"), "HISTORY-02")

    assert played["HISTORY-02"].verdict is Verdict.FAIL


def test_a_server_that_never_compresses_is_not_tested():
    played = results(profile_of("", filling=Filling(turns=3, characters=200)), "COMPRESS-14")

    assert played["COMPRESS-14"].verdict is Verdict.NOT_TESTED
    assert played["COMPRESS-14"].reason.startswith(DID_NOT)

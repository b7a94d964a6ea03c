"""Failures are grouped by the fault that explains them, and nothing is forced to match."""

from dataclasses import replace

from continuity_conformance.core.verdicts import Evidence, Result, Verdict, undecided
from continuity_conformance.diagnose.causes import causes
from continuity_conformance.diagnose.cover import Cover
from continuity_conformance.diagnose.match import Knowledge
from continuity_conformance.diagnose.symptoms import FailurePlace, Symptoms, symptoms
from continuity_spec import load_spec

SPEC = load_spec()
DOUBLES, LOSES, FORKS = "history-doubles", "rotating-turn-lost", "slug-forks-on-eviction"


def at(kind: str, scenario: str = "chat", step: str = "2") -> FailurePlace:
    return FailurePlace(scenario, step, "sees", (kind,), "red, red, blue")


def result(identity: str, place: FailurePlace | None = None, blocked_by: str = "") -> Result:
    """A failure at this place; without one a pass."""
    if place is None:
        return undecided(SPEC.requirement(identity), Verdict.PASS, "")
    evidence = Evidence(
        place.scenario,
        "",
        Verdict.NOT_TESTED if blocked_by else Verdict.FAIL,
        step=f"{place.step} chat",
        expectation=place.expectation,
        expected="red, blue",
        actual="red, red, blue",
        kinds=place.kinds,
    )
    verdict = Verdict.NOT_TESTED if blocked_by else Verdict.FAIL
    return replace(undecided(SPEC.requirement(identity), verdict, "why"), evidence=(evidence,), blocked_by=blocked_by)


def signature(*passes: str, **fails: FailurePlace) -> Symptoms:
    return Symptoms({name.replace("_", "-"): (place,) for name, place in fails.items()}, frozenset(passes))


KNOWLEDGE = Knowledge(
    {
        DOUBLES: signature("SLUG-03", HISTORY_02=at("doubled"), ECHO_02=at("doubled"), COMPRESS_09=at("doubled")),
        LOSES: signature("SLUG-03", "ECHO-02", HISTORY_02=at("missing"), COMPRESS_09=at("missing")),
        FORKS: signature("HISTORY-02", "ECHO-02", SLUG_03=at("missing", "evicted", "4")),
        **{f"other-{number}": signature("HISTORY-02", "SLUG-03", "ECHO-02") for number in range(40)},
    },
    {DOUBLES: frozenset({"HISTORY-02"}), LOSES: frozenset({"COMPRESS-09"}), FORKS: frozenset({"SLUG-03"})},
)


def test_the_kind_of_difference_tells_defects_apart_that_fail_at_the_same_steps():
    doubled = [result("HISTORY-02", at("doubled")), result("COMPRESS-09", at("doubled")), result("SLUG-03")]
    lost = [result("HISTORY-02", at("missing")), result("COMPRESS-09", at("missing")), result("SLUG-03")]

    assert [cause.defect for cause in causes(doubled, KNOWLEDGE)] == [DOUBLES]
    assert [cause.defect for cause in causes(lost, KNOWLEDGE)] == [LOSES]


def test_two_causes_are_found_at_once():
    run = [
        result("HISTORY-02", at("doubled")),
        result("ECHO-02", at("doubled")),
        result("SLUG-03", at("missing", "evicted", "4")),
    ]

    found = causes(run, KNOWLEDGE)

    assert {cause.defect: cause.explains for cause in found} == {
        DOUBLES: ("HISTORY-02", "ECHO-02"),
        FORKS: ("SLUG-03",),
    }


def test_what_is_blocked_goes_with_the_cause_and_is_no_failure_of_it():
    run = [result("HISTORY-02", at("doubled")), result("COMPRESS-09", at("doubled"), blocked_by="HISTORY-02")]

    (cause,) = causes(run, KNOWLEDGE)

    assert (cause.explains, cause.blocks) == (("HISTORY-02",), ("COMPRESS-09",))


def test_a_pass_that_the_defect_would_not_have_speaks_against_it():
    run = [result("HISTORY-02", at("doubled")), result("ECHO-02"), result("COMPRESS-09", at("doubled"))]

    (cause,) = causes(run, KNOWLEDGE)

    assert (cause.contrary, cause.confidence) == (("ECHO-02",), "medium")


def test_a_failure_that_no_defect_shows_is_a_cause_of_its_own():
    (cause,) = causes([result("DELETE-01", at("foreign"))], KNOWLEDGE)

    assert (cause.defect, cause.confidence, cause.explains) == (None, "unknown", ("DELETE-01",))
    assert cause.title == (
        "Not met: DELETE of a session MUST delete its whole conversation: history, compression chain, slugs, responses and replays"
        ' (in "chat" the model saw red, red, blue instead of red, blue)'
    )


def test_the_same_requirement_in_another_way_is_not_forced_to_match():
    (cause,) = causes([result("HISTORY-02", FailurePlace("stream", "7", "status", ("status 500",)))], KNOWLEDGE)

    assert cause.defect is None


def test_the_same_kind_at_another_place_is_not_enough():
    """A status of 404 means something else in each scenario; a history that is doubled does not."""
    missing = [result("SLUG-03", FailurePlace("elsewhere", "1", "status", ("missing",))), result("HISTORY-02")]
    elsewhere = at("doubled", "elsewhere", "9")
    doubled = [result("HISTORY-02", elsewhere), result("ECHO-02", elsewhere), result("SLUG-03")]

    assert [cause.defect for cause in causes(missing, KNOWLEDGE)] == [None]
    assert [cause.defect for cause in causes(doubled, KNOWLEDGE)] == [DOUBLES]


def test_the_order_in_a_detail_and_what_differs_from_run_to_run_do_not_count():
    def found(detail: str) -> float:
        seen = symptoms([result("SLUG-03", at("missing", "evicted", "4"))])
        places = {"SLUG-03": (at("missing", "evicted", "4")._replace(detail="*-one, *-other, third"),)}
        here = (seen.fails["SLUG-03"][0]._replace(detail=detail),)
        return Knowledge({FORKS: Symptoms(places, frozenset())}, {}).likeness(
            Symptoms({"SLUG-03": here}, frozenset()), "SLUG-03", FORKS
        )

    assert found("** *-other, third *-one") == found("*-one, *-other, third") > found("*-two, *-three")


def test_the_lowest_class_comes_first():
    run = [
        result("SLUG-03", at("missing", "evicted", "4")),
        result("HISTORY-02", at("doubled")),
        result("ECHO-02", at("doubled")),
    ]

    assert [cause.defect for cause in causes(run, KNOWLEDGE)] == [DOUBLES, FORKS]


def test_a_run_without_failures_has_no_causes():
    untested = undecided(SPEC.requirement("HISTORY-02"), Verdict.NOT_TESTED, "no control")

    assert causes([untested, result("ECHO-02")], KNOWLEDGE) == ()


def test_what_was_not_decided_says_nothing():
    shown = symptoms([undecided(SPEC.requirement("HISTORY-02"), Verdict.NOT_TESTED, ""), result("ECHO-02")])

    assert (shown.fails, shown.passes) == ({}, {"ECHO-02"})


def test_the_evidence_of_a_known_defect_is_from_a_place_where_the_defect_fails():
    longer = result("SLUG-03", at("missing", "evicted", "4"))
    shorter = replace(longer.evidence[0], scenario="another", step="1 chat")
    run = [replace(longer, evidence=(shorter, replace(longer.evidence[0], exchanges=({}, {}))))]

    (cause,) = causes(run, KNOWLEDGE)

    assert (cause.defect, cause.evidence[0].scenario) == (FORKS, "evicted")


def test_a_defect_that_explains_only_other_failures_is_no_alternative():
    common = {
        f"breaks-{number}": signature(DELETE_01=at("status 500")._replace(detail="other")) for number in range(20)
    }
    rare = {f"rare-{number}": signature() for number in range(90)}
    knowledge = Knowledge({FORKS: KNOWLEDGE.signatures[FORKS], **common, **rare}, {})
    run = [result("SLUG-03", at("missing", "evicted", "4")), result("DELETE-01", at("status 500"))]
    cover = Cover(symptoms(run), knowledge)

    assert cover.defects == [FORKS]
    assert cover.alternatives(FORKS, margin=4.0) == []


def test_a_scenario_that_ended_earlier_says_nothing_about_later_steps():
    """ECHO-02 fails at its first step, for another reason: whether it would have failed at the third, nobody knows."""
    knowledge = Knowledge(
        {DOUBLES: signature(HISTORY_02=at("doubled"), ECHO_02=at("doubled", step="3"), ECHO_05=at("doubled"))}, {}
    )
    history, early = result("HISTORY-02", at("doubled")), at("status 500", step="1")
    ended = symptoms([history, result("ECHO-02", early)])
    reached = symptoms([history, result("ECHO-02", early._replace(step="3"))])

    assert knowledge.whole(ended, DOUBLES) < knowledge.whole(reached, DOUBLES)
    assert knowledge.whole(ended, DOUBLES) == knowledge.whole(symptoms([history]), DOUBLES)


def test_a_scenario_that_is_blocked_says_nothing_where_another_one_fails():
    failing = result("ECHO-02", at("status 404", "other"))
    blocked = result("ECHO-02", at("doubled", "chat"), blocked_by="HISTORY-02").evidence[0]

    assert symptoms([replace(failing, evidence=(*failing.evidence, blocked))]).silent == {"ECHO-02": {"chat"}}


def test_of_two_failures_at_one_place_the_one_that_differs_in_the_same_way_is_shown():
    failing = result("SLUG-03", at("missing", "evicted", "4"))
    other = replace(failing.evidence[0], kinds=("status 500",), actual="500")
    run = [replace(failing, evidence=(other, replace(failing.evidence[0], exchanges=({},))))]

    (cause,) = causes(run, KNOWLEDGE)

    assert (cause.defect, cause.evidence[0].actual) == (FORKS, "red, red, blue")


def test_three_failures_that_break_the_server_are_one_cause():
    broken = {"SLUG-03": at("status 500"), "DELETE-01": at("status 500"), "ISOLATE-01": at("status none")}
    knowledge = Knowledge({**KNOWLEDGE.signatures, FORKS: signature(SLUG_03=at("status 500"))}, KNOWLEDGE.made_for)

    (alone,) = causes([result("SLUG-03", broken["SLUG-03"])], knowledge)
    (together,) = causes([result(identity, place) for identity, place in broken.items()], knowledge)

    assert alone.defect == FORKS
    assert (together.defect, set(together.explains)) == (None, set(broken))
    assert together.title == (
        "Some requests break the server: 500, or no answer at all. "
        "A slug whose last response was evicted starts another session without a word"
    )


def test_a_lone_failure_that_breaks_the_server_says_so():
    (cause,) = causes([result("DELETE-01", at("status 500"))], KNOWLEDGE)

    assert cause.title == "Some requests break the server: 500, or no answer at all"


def test_a_turn_that_fails_after_another_was_killed_does_not_say_that_requests_break_the_server():
    killed = result("DURABLE-03", FailurePlace("by header", "3", "status", ("status 500",)))

    (cause,) = causes([killed], KNOWLEDGE)

    assert cause.title.startswith("Not met: After SIGKILL in the middle of a turn")


def test_the_title_has_no_body_of_an_answer():
    failing = result("DELETE-01", FailurePlace("chat", "2", "status", ("status 200",)))
    evidence = replace(failing.evidence[0], expected="404", actual='200 {"id": "resp_1"}')

    (cause,) = causes([replace(failing, evidence=(evidence,))], KNOWLEDGE)

    assert cause.title.endswith('(in "chat" the answer is 200, expected 404)')


def test_everything_that_a_cause_blocks_is_listed_whatever_it_would_match():
    run = [
        result("HISTORY-02", at("doubled")),
        result("ECHO-02", at("doubled")),
        result("SLUG-03", at("missing", "evicted", "4"), blocked_by="HISTORY-02"),
        result("DELETE-01", at("foreign")),
        result("ISOLATE-09", at("foreign"), blocked_by="DELETE-01"),
    ]

    assert {cause.defect: cause.blocks for cause in causes(run, KNOWLEDGE)} == {
        DOUBLES: ("SLUG-03",),
        None: ("ISOLATE-09",),
    }


def test_what_passes_in_scenarios_that_do_not_apply_speaks_against_nothing():
    run = [result("HISTORY-02", at("doubled")), result("ECHO-02"), result("COMPRESS-09", at("doubled"))]
    not_applicable = Evidence("chat", "", Verdict.NOT_APPLICABLE, "the target does not offer it")
    run[1] = replace(run[1], evidence=(not_applicable,))

    (cause,) = causes(run, KNOWLEDGE)

    assert cause.contrary == ()


def test_one_place_alone_is_no_high_confidence():
    few = [result("SLUG-03", at("missing", "evicted", "4"))]
    more = [result("HISTORY-02", at("doubled")), result("ECHO-02", at("doubled")), result("COMPRESS-09", at("doubled"))]

    assert [cause.confidence for cause in (*causes(few, KNOWLEDGE), *causes(more, KNOWLEDGE))] == ["medium", "high"]


def test_a_failure_that_is_mostly_elsewhere_is_of_low_confidence_and_says_where_another_defect_fails():
    places = {"SLUG-03": (at("missing", "evicted", "4"),)}
    other = {"SLUG-03": (at("missing", "restarted", "2"), at("missing", "deleted", "2"))}
    signatures = {**KNOWLEDGE.signatures, FORKS: Symptoms(places, frozenset()), LOSES: Symptoms(other, frozenset())}
    made_for = {FORKS: frozenset({"SLUG-03"}), LOSES: frozenset({"SLUG-03"})}
    evidence = tuple(result("SLUG-03", place).evidence[0] for place in (*places["SLUG-03"], *other["SLUG-03"]))
    run = [replace(result("SLUG-03", at("missing")), evidence=evidence)]

    (cause,) = causes(run, Knowledge(signatures, made_for))

    named = LOSES if cause.defect == FORKS else FORKS
    assert cause.besides
    assert all(each.endswith(f"as with {named}") for each in cause.besides)


def test_the_requirement_that_the_defect_was_made_for_is_shown_first():
    run = [result("ECHO-02", at("doubled")), result("HISTORY-02", at("doubled")), result("COMPRESS-09", at("doubled"))]

    (cause,) = causes(run, KNOWLEDGE)

    assert cause.evidence[0].id == "HISTORY-02"


def test_two_defects_that_fit_alike_are_both_in_the_title():
    twin = {**KNOWLEDGE.signatures, LOSES: KNOWLEDGE.signatures[FORKS]}
    knowledge = Knowledge(twin, {FORKS: frozenset({"SLUG-03"}), LOSES: frozenset({"SLUG-03"})})

    (cause,) = causes([result("SLUG-03", at("missing", "evicted", "4"))], knowledge)

    assert ". Or: " in cause.title
    assert cause.confidence != "high"


def test_the_words_of_a_server_and_a_failure_told_in_a_stream():
    refused = result("SLUG-07", FailurePlace("streamed", "2", "status", ("status 200",)))
    told = replace(refused.evidence[0], actual='200, but the answer tells a failure: data: {"code": "404"}')
    accepted = replace(refused.evidence[0], actual='200 {"id": "resp_1"}')

    found = [symptoms([replace(refused, evidence=(each,))]).fails["SLUG-07"] for each in (told, accepted)]

    assert [(place.kinds, place.detail) for (place,) in found] == [(("status 200 told",), ""), (("status 200",), "")]


def test_refusals_in_the_same_words_are_one_cause():
    words = '400 {"error": {"message": "Only a single user message is supported"}}'
    places = {"HISTORY-01": "earlier messages in the body", "DERIVE-16": "a conversation in the body"}
    run = [
        replace(failing, evidence=(replace(failing.evidence[0], actual=words),))
        for identity, name in places.items()
        if (failing := result(identity, FailurePlace(name, "2", "status", ("status 400",))))
    ]

    (cause,) = causes(run, KNOWLEDGE)

    assert set(cause.explains) == set(places)


def test_halves_of_turns_are_one_cause_only_where_the_same_was_done_to_a_turn():
    killed = FailurePlace("by header", "3", "sees", ("partial",))
    hung_up = FailurePlace("chat", "3", "sees", ("partial",))
    deleted = FailurePlace("the only response of a slug, streamed", "3", "sees", ("partial",))
    run = [result("DURABLE-03", killed), result("STREAM-03", hung_up), result("SLUG-18", deleted)]
    named = {**KNOWLEDGE.signatures, FORKS: Symptoms({"DURABLE-03": (killed,)}, frozenset())}

    found = causes(run, Knowledge(named, {FORKS: frozenset({"DURABLE-03"})}))

    assert {cause.defect: cause.explains for cause in found} == {FORKS: ("DURABLE-03", "STREAM-03"), None: ("SLUG-18",)}


def test_a_limit_on_requests_is_no_broken_promise():
    (cause,) = causes([result("CONTRACT-20", FailurePlace("", "1", "status", ("status 429",)))], KNOWLEDGE)

    assert cause.title.startswith("Requests of the run are refused with 429")


def test_the_title_quotes_the_message_of_a_refusal():
    failing = result("SLUG-14", FailurePlace("the object form", "1", "status", ("status 400",)))
    actual = '400 {"error": {"message": "Input should be a string", "param": null}}'
    evidence = replace(failing.evidence[0], expected="2xx", actual=actual)

    (cause,) = causes([replace(failing, evidence=(evidence,))], KNOWLEDGE)

    assert cause.title.endswith('(in "the object form" the answer is 400 "Input should be a string", expected 2xx)')


def test_a_cause_without_a_name_shows_how_most_scenarios_fail_and_says_in_which_other_ways():
    shorter = result("DELETE-01", FailurePlace("a", "1", "status", ("status 404",))).evidence[0]
    often = [result("DELETE-01", at("foreign", name)).evidence[0] for name in ("b", "c")]
    run = [replace(result("DELETE-01", at("foreign")), evidence=(replace(shorter, actual="404"), *often))]

    (cause,) = causes(run, KNOWLEDGE)

    assert cause.evidence[0].scenario == "b"
    assert cause.besides == ('DELETE-01 in "a" the answer is 404, expected red, blue',)

"""The verdict of a campaign says why it ended early."""

from continuity_conformance.torture.audit.history import Violation
from continuity_conformance.torture.campaign import Plan
from continuity_conformance.torture.result import CampaignResult, Reported
from continuity_conformance.torture.state import Counts

PLAN = Plan(kills=50, minutes=30, seed=1, clients=16)


def ended_after(kills: int, *violations: Reported) -> CampaignResult:
    return CampaignResult("mine", PLAN, 9.0, {"at random": kills}, 0, 0, Counts(), violations, "", (), 0, stopped=False)


def test_a_target_that_does_not_start_any_more_ends_the_campaign():
    dead = Reported(str(Violation.NOT_STARTED), "", "DURABLE-03", "the target", "", 8.0, calm=False, timeline=())

    assert ended_after(18, dead).incomplete == "18 of 50 kills, because the target did not start any more"


def test_a_campaign_that_had_too_little_time_says_so():
    assert ended_after(18).incomplete == "18 of 50 kills, because the time was over"

"""Calm scenarios spread over several servers of one target."""

from dataclasses import replace

from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.run.session import Run
from continuity_conformance.target.resolve import resolve
from continuity_plugins.reference import reference_profile
from continuity_spec import load_spec

IDS = ("ECHO-02", "ECHO-03", "ECHO-04", "HISTORY-02", "DERIVE-01", "CONTRACT-12")


def test_each_plays_on_one_of_them_and_a_campaign_on_the_first():
    profile = reference_profile()
    given = replace(profile, limits=replace(profile.limits, servers=2))
    requirements = [each for each in load_spec().requirements if each.id in IDS]
    with Run(resolve(None, given), requirements) as run:
        results = {each.id: run.result(each.id) for each in requirements}
        first = run.facts.url
    servers = {
        id_: {str(exchange["request"]["url"]).split("/v1/")[0] for one in result.evidence for exchange in one.exchanges}
        for id_, result in results.items()
    }

    assert {result.verdict for result in results.values()} == {Verdict.PASS}
    assert len(set.union(*servers.values())) == 2
    assert servers["CONTRACT-12"] == {first}

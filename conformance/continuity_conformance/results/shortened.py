"""Results that were published by an earlier kit: which scenarios of a requirement did not apply to the target.

They had the failures only. What a scenario needs stands in the spec, and what the target offers in the file, so most of it can be told again.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from continuity_conformance.core.verdicts import Evidence, Result, Verdict
from continuity_conformance.results.recorded import Report
from continuity_conformance.scenario.context import TRAIT_REASONS, TRAITS
from continuity_spec import Scenario, load_spec

_NO_OFFERS: Final = TRAITS | {"tenants"}
_REASON: Final = "it does not apply to the target"


def is_shortened(report: Report) -> bool:
    """Whether the file has no evidence but of failures. A whole one tells of scenarios that passed; one that is published now, of those that do not apply."""
    return not any(each.reason and not _shows_failure(each) for result in report.results for each in result.evidence)


def _shows_failure(each: Evidence) -> bool:
    return each.outcome is Verdict.FAIL or bool(each.kinds)


def completed(report: Report) -> tuple[Result, ...]:
    """The results with the scenarios that do not apply, as far as the file shows it."""
    return tuple(_completed(result, report) for result in report.results)


def _completed(result: Result, report: Report) -> Result:
    told = {each.scenario for each in result.evidence}
    silent = [Evidence(name, "", Verdict.NOT_APPLICABLE, _REASON) for name in _silent(result, report)]
    return replace(result, evidence=(*result.evidence, *(each for each in silent if each.scenario not in told)))


def _silent(result: Result, report: Report) -> Iterator[str]:
    known = {each.id: each for each in load_spec().requirements}
    reasons = " ".join(each.reason for each in report.results if each.verdict is Verdict.NOT_APPLICABLE)
    scenarios = known[result.id].scenarios if result.id in known else ()
    return (each.name for each in scenarios if not _applies(each, report, reasons))


def _applies(scenario: Scenario, report: Report, reasons: str) -> bool:
    """`reasons`: why whole requirements do not apply."""
    options, offers = report.target.options, set(report.target.offers)
    return (
        all(options.get(option, values[0]) in values for option, values in scenario.when.items())
        and scenario.needs <= offers | _NO_OFFERS
        and not any(need in scenario.needs and why in reasons for need, why in TRAIT_REASONS.items())
        and not (scenario.uses_slugs and "the target takes no slugs" in reasons)
        and not (scenario.needs_a_session_id_of_the_target and options.get("tells") == "nothing")
        and not (scenario.controls & {"evict", "evict-by-pressure"} and "never evicts a response" in reasons)
    )

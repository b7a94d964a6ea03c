"""Whether a scenario can be played on a target: not applicable, not tested, or yes. Never a pass."""

from collections.abc import Iterator

from continuity_conformance.stage import Stage
from continuity_conformance.verdicts import Verdict
from continuity_spec import Scenario

_WITHOUT_A_KEY = frozenset({"nobody", "stranger"})
_NO_SECOND_KEY = _WITHOUT_A_KEY | {"alice"}


def hindrance(stage: Stage, scenario: Scenario) -> tuple[Verdict, str] | None:
    """Why a scenario is not played here, or None where nothing stands in its way."""
    return next(_hindrances(stage, scenario), None)


def _hindrances(stage: Stage, scenario: Scenario) -> Iterator[tuple[Verdict, str]]:
    target = stage.target
    for option, values in scenario.when.items():
        if target.options[option] not in values:
            declared = target.options[option]
            yield Verdict.NOT_APPLICABLE, f"the target's option {option} is {declared}, not {' or '.join(values)}"
    if missing := sorted(scenario.needs - target.offers - {"tenants"}):
        yield Verdict.NOT_APPLICABLE, f"the target does not offer {', '.join(missing)}"
    yield from _not_in_its_dialect(stage, scenario)
    if "tenants" in scenario.needs and target.single_user:
        yield Verdict.NOT_APPLICABLE, "the target is for a single user"
    if scenario.principals & _WITHOUT_A_KEY and not target.profile.principals:
        yield Verdict.NOT_APPLICABLE, "the target has no keys"
    if unknown := sorted(scenario.principals - _NO_SECOND_KEY - set(target.profile.principals)):
        yield Verdict.NOT_TESTED, f"no key of a second principal: add {unknown[0]} to `principals` of the profile"
    if lacking := sorted(scenario.controls - stage.controls.available):
        yield Verdict.NOT_TESTED, f"no control to {', '.join(lacking)}"
    if scenario.uses_model and target.observed != "probe":
        yield Verdict.NOT_TESTED, "the target's model is not the probe model, so it cannot be told what to do"


def _not_in_its_dialect(stage: Stage, scenario: Scenario) -> Iterator[tuple[Verdict, str]]:
    """What cannot be said to a target that tells no session, or takes no slugs."""
    target = stage.target
    if target.options["tells"] == "nothing" and scenario.goes_on_in_a_told_session:
        yield Verdict.NOT_APPLICABLE, "the target does not tell the session that the client would go on in"
    if target.profile.slugs == "none" and scenario.uses_slugs:
        yield Verdict.NOT_APPLICABLE, "the target takes no slugs (`conversation`)"

"""Whether a scenario can be played on a target: not applicable, not tested, or yes. Never a pass."""

from collections.abc import Mapping

from continuity_conformance.stage import Stage
from continuity_conformance.verdicts import Verdict


def hindrance(
    stage: Stage,
    when: Mapping[str, tuple[str, ...]],
    needs: frozenset[str],
    controls: frozenset[str],
    principals: frozenset[str],
    *,
    acts: bool,
) -> tuple[Verdict, str] | None:
    """Why a scenario is not played here, or None. `acts`: the probe model must act, not only look on."""
    target = stage.target
    for option, values in when.items():
        if target.options[option] not in values:
            return Verdict.NOT_APPLICABLE, f"the target's option {option} is {target.options[option]}, not {' or '.join(values)}"
    if missing := sorted(needs - target.offers - {"tenants"}):
        return Verdict.NOT_APPLICABLE, f"the target does not offer {', '.join(missing)}"
    if "tenants" in needs and target.single_user:
        return Verdict.NOT_APPLICABLE, "the target is for a single user"
    if unknown := sorted(principals - {"nobody", "stranger", "alice"} - set(target.profile.principals)):
        return Verdict.NOT_TESTED, f"no key of a second principal: add {unknown[0]} to `principals` of the profile"
    if lacking := sorted(controls - stage.controls.available):
        return Verdict.NOT_TESTED, f"no control to {', '.join(lacking)}"
    if acts and target.observed != "probe":
        return Verdict.NOT_TESTED, "the target's model is not the probe model, so it cannot be told what to do"
    return None

"""Whether a scenario can be played on a target. If not, its verdict is *not applicable* or *not tested*, never a pass.

The scheduler asks before it plays; the doctor asks the same to predict what a run could decide (`forecast`).
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum

from continuity_conformance.checks.isolate import MANY_IDS
from continuity_conformance.checks.registry import CONDITIONS, DISTURBING, KEYED, SEEDED
from continuity_conformance.core.budget import DEFAULT_EXAMPLES
from continuity_conformance.core.verdicts import Verdict, worst
from continuity_conformance.scenario.context import TRAITS, Context
from continuity_conformance.scenario.expect import model
from continuity_spec import Requirement, Scenario

_WITHOUT_A_KEY = frozenset({"nobody", "stranger"})
_NO_SECOND_KEY = _WITHOUT_A_KEY | {"alice"}
_NO_KEYS = "the target has no keys"
_EVICTIONS = frozenset({"evict", "evict-by-pressure"})


def obstacle_to(context: Context, requirement: Requirement, scenario: Scenario) -> tuple[Verdict, str] | None:
    """Why a scenario cannot be played on this target; None where it can."""
    check = requirement.check or ""
    if check in KEYED and not context.target.profile.principals:
        return Verdict.NOT_APPLICABLE, _NO_KEYS
    found = next(_obstacles(context, scenario, DISTURBING.get(check, frozenset())), None)
    return found if found is not None or check not in CONDITIONS else CONDITIONS[check](context)


def _obstacles(context: Context, scenario: Scenario, controls: frozenset[str]) -> Iterator[tuple[Verdict, str]]:
    target = context.target
    for option, values in scenario.when.items():
        if target.options[option] not in values:
            declared = target.options[option]
            yield Verdict.NOT_APPLICABLE, f"the target's option {option} is {declared}, not {' or '.join(values)}"
    yield from (
        (Verdict.NOT_APPLICABLE, why) for trait, why in target.missing_traits.items() if trait in scenario.needs
    )
    if missing := sorted(scenario.needs - target.offers - TRAITS - {"tenants"}):
        yield Verdict.NOT_APPLICABLE, f"the target does not offer {', '.join(missing)}"
    yield from _unsupported_forms(context, scenario)
    if "tenants" in scenario.needs and target.single_user:
        yield Verdict.NOT_APPLICABLE, "the target is for a single user"
    if scenario.principals & _WITHOUT_A_KEY and not target.profile.principals:
        yield Verdict.NOT_APPLICABLE, _NO_KEYS
    if unknown := sorted(scenario.principals - _NO_SECOND_KEY - target.profile.everyone):
        yield Verdict.NOT_TESTED, f"no key of a second principal: add {unknown[0]} to `principals` of the profile"
    yield from _missing_controls(context, scenario.controls | controls)
    if scenario.uses_model and target.observed != "probe":
        yield Verdict.NOT_TESTED, "the target's model is not the probe model, so it cannot be told what to do"


def _missing_controls(context: Context, needed: frozenset[str]) -> Iterator[tuple[Verdict, str]]:
    profile = context.target.profile
    if needed & _EVICTIONS and not profile.evicts:
        yield Verdict.NOT_APPLICABLE, "the target never evicts a response"
    if needed & {"legacy", "previous"} and not (profile.legacy if "legacy" in needed else profile.previous):
        key = "legacy" if "legacy" in needed else "previous"
        yield Verdict.NOT_APPLICABLE, f"the target declares no earlier release (`{key}` in the profile)"
    if lacking := sorted(needed - context.controls.available):
        yield Verdict.NOT_TESTED, f"no control to {', '.join(each.removeprefix('control:') for each in lacking)}"


def _unsupported_forms(context: Context, scenario: Scenario) -> Iterator[tuple[Verdict, str]]:
    """Scenarios that need a session id, a slug or a slug text that this target does not support."""
    target = context.target
    if target.options["tells"] == "nothing" and scenario.needs_a_session_id_of_the_target:
        yield Verdict.NOT_APPLICABLE, "the target does not reveal the session that the client would continue"
    if not target.names_sessions and any(
        "session" in step.params for step in scenario.walk() if step.verb == "respond"
    ):
        yield (
            Verdict.NOT_APPLICABLE,
            "the target has no chat and declares no continuity header, so no request names a session",
        )
    if target.profile.slugs == "none" and scenario.uses_slugs:
        yield Verdict.NOT_APPLICABLE, "the target takes no slugs (`conversation`)"
    if (own := target.profile.body_names.get("conversation")) and scenario.varies_slug_form:
        yield Verdict.NOT_APPLICABLE, f"the target has a field of its own in place of `conversation`: {own}, a text"
    if target.profile.slugs == "made" and scenario.chooses_slug_text:
        yield Verdict.NOT_APPLICABLE, "the target creates its slugs (`conversation`) itself and accepts no others"


def scenarios(requirement: Requirement) -> tuple[Scenario, ...]:
    """The scenarios of a requirement. A Python check counts as one scenario without steps."""
    return requirement.scenarios if requirement.check is None else (without_steps(requirement),)


def without_steps(requirement: Requirement) -> Scenario:
    return Scenario("", (), requirement.when, requirement.needs, (), None, 1)


class Prospect(StrEnum):
    """What a run could decide about a requirement."""

    TESTABLE = "testable"
    REFUTABLE = "refutable"  # it can fail, but not pass
    NOT_TESTED = "not_tested"
    NOT_APPLICABLE = "not_applicable"
    BY_REVIEW = "by_review"


def forecast(context: Context, requirement: Requirement) -> tuple[Prospect, str]:
    """What a run could decide about a requirement, and the reason where it is not everything. A Python check may still find out that it cannot be played."""
    if requirement.manual is not None:
        return Prospect.BY_REVIEW, "a reviewer answers"
    played = scenarios(requirement) or (without_steps(requirement),)
    outlook = [obstacle_to(context, requirement, each) or (Verdict.PASS, unproven(context, each)) for each in played]
    if fewer := _too_few(context, requirement.check or ""):
        outlook = [(verdict, why or (fewer if verdict is Verdict.PASS else why)) for verdict, why in outlook]
    verdict = worst(verdict for verdict, _ in outlook)
    reason = next((why for each, why in outlook if each is verdict and why), "")
    if verdict is Verdict.NOT_APPLICABLE:
        return Prospect.NOT_APPLICABLE, reason
    if verdict is Verdict.NOT_TESTED:
        some = any(each is Verdict.PASS for each, _ in outlook)
        return Prospect.REFUTABLE if some else Prospect.NOT_TESTED, reason
    return Prospect.REFUTABLE if reason else Prospect.TESTABLE, reason


def _too_few(context: Context, check: str) -> str:
    """Why a check that plays many examples cannot pass: the profile allows too few of them."""
    limits = context.target.profile.limits
    if check == MANY_IDS[0] and limits.ids < MANY_IDS[1]:
        return f"only {limits.ids} ids are asked for: limits.ids of the profile"
    if check in SEEDED and 0 < limits.examples < DEFAULT_EXAMPLES:
        return f"only {limits.examples} of {DEFAULT_EXAMPLES} examples are tried (limits.examples)"
    return ""


def unproven(context: Context, scenario: Scenario) -> str:
    """Why a scenario that can be played cannot pass here; empty where it can."""
    words = {word for step in scenario.walk() for word in _words(step.expect, context.target.options)}
    if context.target.observed == "nothing" and words & _OF_THE_MODEL:
        return "what the model saw cannot be observed: the answers do not come from the probe model"
    if context.observer is None and (words & _OF_THE_LOG or "compress" in scenario.controls):
        return "the probe model is not attached"
    return ""


_OF_THE_MODEL = frozenset({*model.EXPECTATIONS, "serial"})
_OF_THE_LOG = frozenset({"ran"})


def _words(expect: Mapping[str, object], options: Mapping[str, str]) -> Iterator[str]:
    """The words of an expectation, including those of the branches that apply to these options."""
    for word, value in expect.items():
        yield word
        if word.startswith("by ") and isinstance(value, Mapping):
            branch = value.get(options[word.removeprefix("by ")])
            yield from _words(branch, options) if isinstance(branch, Mapping) else ()
        elif word == "either" and isinstance(value, list):
            yield from (inner for group in value for inner in _words(group, options))

"""Everything that the kit knows about one requirement without a target: as Markdown and as JSON.

`continuity explain`, the documentation site and the files for coding agents show the same.
"""

from collections.abc import Mapping

from continuity_conformance.suite.defects import defects
from continuity_conformance.suite.packs import known_checks
from continuity_spec import Requirement, Scenario, Step
from continuity_spec.load.entry_source import entry_source
from continuity_spec.render.arrows import elements
from continuity_spec.render.diagram import UNICODE, draw
from continuity_spec.render.markdown import MarkdownPage


def markdown_page() -> MarkdownPage:
    """How a requirement is written, with a sentence on each defect and each Python check."""
    return MarkdownPage(defects=_defects(), checks=_checks())


def as_markdown(requirement: Requirement) -> str:
    return markdown_page().render(requirement, entry_source(requirement))


def as_json(requirement: Requirement) -> dict[str, object]:
    """For programs: what it demands, why, how it is checked step by step, what it must catch, and what to run."""
    known, checks = _defects(), _checks()
    return {
        "id": requirement.id,
        "level": requirement.level.value,
        "class": requirement.class_name or None,
        "text": requirement.text,
        "why": requirement.why,
        "origin": list(requirement.origin),
        "when": {option: list(values) for option, values in requirement.when.items()},
        "needs": sorted(requirement.needs),
        "rests_on": list(requirement.rests_on),
        "checked_by": requirement.how,
        "check": checks.get(requirement.check or "") or requirement.check,
        "question": requirement.manual,
        "scenarios": [_scenario(each) for each in requirement.scenarios],
        "defects": {name: known.get(name, "") for name in requirement.refuted_by},
        "run": f"continuity run {requirement.id} --target URL",
        "entry": entry_source(requirement),
    }


def _scenario(scenario: Scenario) -> dict[str, object]:
    return {
        "name": scenario.name,
        "when": {option: list(values) for option, values in scenario.when.items()},
        "needs": sorted(scenario.needs),
        "controls": sorted(scenario.controls),
        "steps": [_step(step) for step in scenario.steps],
        "diagram": "\n".join(draw(elements(scenario), UNICODE)),
    }


def _step(step: Step) -> dict[str, object]:
    inner = {"together": step.together, "during": step.during}
    return {
        "does": step.text,
        "expect": dict(step.expect),
        **{name: [_step(part) for part in parts] for name, parts in inner.items() if parts},
    }


def _defects() -> Mapping[str, str]:
    return {defect.name: defect.cited for defect in defects().values()}


def _checks() -> Mapping[str, str]:
    return {name: (check.__doc__ or "").partition(": ")[2] for name, check in known_checks().items()}

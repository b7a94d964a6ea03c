"""One requirement as a page of text: what it demands, why, how it is checked, and the defects that must make the check fail.

Only the first scenario is drawn as a sequence diagram, because it is the simplest; the others get one line each. Pure functions
from a requirement to text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from continuity_spec.errors import UnknownScenario, suggestion
from continuity_spec.expectations import refuses
from continuity_spec.model import TURNS, Requirement, Scenario, Step
from continuity_spec.render.arrows import elements, elements_of_always
from continuity_spec.render.diagram import UNICODE, WIDTH, LineStyle, draw
from continuity_spec.render.wrap import wrap

_FACT_NAMES = 11
"""The width of the column with the names of facts."""


@dataclass(frozen=True, slots=True)
class RequirementPage:
    """How requirements are shown, and a sentence on each defect and Python check, which the spec only names."""

    width: int = WIDTH
    """60 columns or more."""
    style: LineStyle = UNICODE
    defects: Mapping[str, str] = field(default_factory=dict)
    checks: Mapping[str, str] = field(default_factory=dict)

    def render(self, requirement: Requirement, drawn: Sequence[Scenario]) -> str:
        """Write everything about one requirement, and draw these of its scenarios."""
        blocks = [self._facts(requirement), self._checking(requirement, drawn), self._defects(requirement)]
        return "\n\n".join("\n".join(block) for block in map(list, blocks) if block)

    def _facts(self, requirement: Requirement) -> Iterator[str]:
        standing = ", ".join(filter(None, (requirement.level.value, requirement.class_name)))
        yield self._wrapped(f"{requirement.id} ({standing})  ", requirement.text, 2)
        facts = {
            "why": requirement.why,
            "origin": ", ".join(requirement.origin),
            "applies": option_values(requirement.when),
            "needs": ", ".join(sorted(requirement.needs)),
            "written in": str(requirement.place),
        }
        yield from (self._fact(name, text) for name, text in facts.items() if text)

    def _checking(self, requirement: Requirement, drawn: Sequence[Scenario]) -> Iterator[str]:
        if requirement.manual is not None:
            yield self._wrapped("  A reviewer answers: ", requirement.manual, 4)
        if requirement.check is not None:
            sentence = self.checks.get(requirement.check, "")
            by = f"{requirement.check}: {sentence}" if sentence else f"{requirement.check}."
            yield self._wrapped("  ", f"Checked in Python by {by}", 4)
        if requirement.always is not None:
            yield "  On every such answer of a whole run, whichever scenario asked:"
            yield from draw(elements_of_always(requirement.always), self.style, self.width)
        for number, scenario in enumerate(drawn):
            yield from [""] * bool(number)
            yield from self._scenario(scenario, requirement)
        others = [scenario for scenario in requirement.scenarios if scenario not in drawn]
        yield from self._others(others, requirement)

    def _scenario(self, scenario: Scenario, requirement: Requirement) -> Iterator[str]:
        title = scenario_title(scenario, requirement)
        if title:
            yield self._wrapped("  ", title, 4)
        yield from draw(elements(scenario), self.style, self.width)

    def _others(self, others: Sequence[Scenario], requirement: Requirement) -> Iterator[str]:
        if others:
            yield "  also, drawn by --all or --scenario NAME:"
        for scenario in others:
            line = (
                f"    {scenario_title(scenario, requirement)}: {self._difference(scenario, requirement.scenarios[0])}"
            )
            yield line if len(line) <= self.width else f"{line[: self.width - 3]}..."

    def _difference(self, scenario: Scenario, first: Scenario) -> str:
        if scenario is not first and _unstreamed(scenario.steps) == _unstreamed(first.steps):
            return f"the same{_streaming(scenario)}"
        return f" {self.style.then} ".join(_outline(step) for step in scenario.steps)

    def _defects(self, requirement: Requirement) -> Iterator[str]:
        if requirement.refuted_by:
            yield "  defects made to break it:"
        for name in requirement.refuted_by:
            yield self._wrapped(f"    {name}  ", self.defects.get(name, ""), 6)

    def _fact(self, name: str, text: str) -> str:
        return self._wrapped(f"  {name:<{_FACT_NAMES}}", text, _FACT_NAMES + 2)

    def _wrapped(self, lead: str, text: str, indent: int) -> str:
        return wrap(lead, text, indent, self.width)


def choose_scenarios(requirement: Requirement, name: str | None, *, every: bool) -> Sequence[Scenario]:
    """Choose the scenarios to draw: all of them, the one of this name, or the first."""
    if name is None:
        return requirement.scenarios if every else requirement.scenarios[:1]
    matching = [scenario for scenario in requirement.scenarios if scenario.name.lower() == name.lower()]
    if not matching:
        known = [scenario.name for scenario in requirement.scenarios if scenario.name]
        raise UnknownScenario(name, f"{requirement.id} has no scenario of this name", suggestion(name, known))
    return matching


def option_values(when: Mapping[str, tuple[str, ...]]) -> str:
    """Write the option values that a requirement or scenario applies to."""
    return ", ".join(f"{option}={' or '.join(values)}" for option, values in when.items())


def scenario_title(scenario: Scenario, requirement: Requirement) -> str:
    """Write the name of a scenario, with what is special about it in parentheses."""
    own = {option: values for option, values in scenario.when.items() if option not in requirement.when}
    examples = f"{len(scenario.examples)} examples" if scenario.examples else ""
    where = f" of {scenario.vectors}" if scenario.vectors else ""
    copies = f"{scenario.copies} copies side by side" if scenario.copies > 1 else ""
    notes = [note for note in (f"only {option_values(own)}" if own else "", f"{examples}{where}", copies) if note]
    return " ".join(part for part in (scenario.name, f"({'; '.join(notes)})" if notes else "") if part)


def _unstreamed(steps: Sequence[Step]) -> list[object]:
    """Write steps in a form that is equal for steps that differ only in whether they stream."""
    return [
        (
            step.verb,
            {name: value for name, value in step.params.items() if name != "stream"},
            step.expect,
            step.at_once,
            _unstreamed(step.during),
            _unstreamed(step.together),
        )
        for step in steps
    ]


def _streaming(scenario: Scenario) -> str:
    streams = {step.params.get("stream") is True for step in scenario.walk() if step.verb in TURNS}
    return ", streamed" if streams == {True} else ", partly streamed" if True in streams else ", not streamed"


def _outline(step: Step) -> str:
    """Describe a step in a word or two."""
    if step.together:
        return f"({' + '.join(map(_outline, step.together))})"
    if step.verb not in TURNS:
        return str(step.params["name"] if step.verb == "control" else step.verb).replace("_", " ")
    message = str(step.params.get("say") or step.params.get("returns") or step.verb)
    who = f"{step.params['as']}: " if "as" in step.params else ""
    copies = f" x {step.at_once}" if step.at_once > 1 else ""
    during = f" while ({', '.join(map(_outline, step.during))})" if step.during else ""
    notes = ", ".join(_notes(step))
    return f"{who}{message}{copies}{f' ({notes})' if notes else ''}{during}"


def _notes(step: Step) -> Iterator[str]:
    if step.params.get("compress") is True:
        yield "compressed"
    if step.params.get("kill") is True:
        yield "killed at the answer"
    if "model" in step.params:
        yield "model " + str(step.params["model"]).strip("{}").replace("'", "").replace(":", "")
    if refuses(step.expect):
        yield "refused"

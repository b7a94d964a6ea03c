"""Find requirements that match their schema, but check less than they seem to, or nothing.

There is one function for each rule. The rules know the vocabulary; they know neither the Python checks nor the defects.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from continuity_spec.errors import SpecError
from continuity_spec.expectations import groups, may_refuse, must_accept
from continuity_spec.load.loader import load_requirements
from continuity_spec.load.schema import violations
from continuity_spec.load.yaml_document import read_yaml
from continuity_spec.model import Place, Requirement, Scenario, Step, calls_client
from continuity_spec.needs import inferred_needs
from continuity_spec.variables import uses

_VIEWS = ("sees", "recalls")
_MODIFIERS = {"sees": ("maybe", "each"), "recalls": ("each", "verbatim", "summarised")}
_DISCOURAGED = re.compile(r"\b([Ss]hould|[Tt]est(s|ed)? that)\b")


@dataclass(frozen=True, slots=True)
class Problem:
    """A requirement breaks a rule of lint at this place."""

    code: str
    place: Place
    entry: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.place}: {self.entry}: {self.what}. {self.remedy} [{self.code}]"


_Complaint = tuple[Place, str, str]
"""Where, what is wrong, what to do now."""


def lint_files(paths: Iterable[Path]) -> list[str]:
    """List everything that is wrong with these files of requirements: violations of the schema, then problems of lint."""
    readable: list[Requirement] = []
    messages: list[str] = []
    for path in paths:
        try:
            broken = violations(read_yaml(path), "requirements")
            readable += [] if broken else load_requirements(path)
        except SpecError as error:
            broken = [error]
        messages += map(str, broken)
    return [*messages, *map(str, lint_requirements(readable))]


def lint_requirements(requirements: Sequence[Requirement]) -> list[Problem]:
    """Apply every rule to every requirement, and compare the requirements with each other."""
    problems = [
        Problem(code, place, requirement.id, what, remedy)
        for requirement in requirements
        for code, rule in RULES.items()
        for place, what, remedy in rule(requirement)
    ]
    problems.extend(_repeated_texts(requirements))
    return sorted(problems, key=lambda problem: (problem.place.file, problem.place.line, problem.place.column))


def _repeated_texts(requirements: Iterable[Requirement]) -> Iterator[Problem]:
    first: dict[str, Requirement] = {}
    for requirement in requirements:
        earlier = first.setdefault(requirement.text.casefold(), requirement)
        if earlier is not requirement:
            what = f"the text is the same as that of {earlier.id}"
            remedy = "Say what this requirement demands beyond that one."
            yield Problem("repeated-text", requirement.place, requirement.id, what, remedy)


def _steps(requirement: Requirement) -> Iterator[tuple[Scenario, Step]]:
    for scenario in requirement.scenarios:
        for step in scenario.walk():
            yield scenario, step


def _labels(step: Step, *words: str) -> Iterator[str]:
    """Yield the labels that the step expects under these words, without modifiers such as "maybe"."""
    for group in groups(step.expect):
        for word in words:
            listed = group.get(word, ())
            for label in listed if isinstance(listed, list | dict) else ():
                yield re.sub(r"^(maybe|each|verbatim|summarised) ", "", str(label))


def _said(scenario: Scenario) -> set[str]:
    """Collect the labels of all messages that the scenario sends or puts into an old database."""
    said: set[str] = set()
    for step in scenario.walk():
        history = step.params.get("history", ())
        rows = step.params.get("rows", ())
        said.update(history if isinstance(history, list) else ())
        said.update(label for row in (rows if isinstance(rows, list) else ()) for label in row.get("turns", ()))
        label = str(step.params.get("say", ""))
        said.update({label, *(f"{label}/{number + 1}" for number in range(step.at_once))} if label else ())
    return said


def unsaid_label(requirement: Requirement) -> Iterator[_Complaint]:
    """Find a label in sees, recalls, forgets, ran, hides or system that no step of the scenario says."""
    for scenario, step in _steps(requirement):
        said = _said(scenario)
        prompts = {
            str(other.params[role])
            for other in scenario.walk()
            for role in ("system", "developer", "instructions")
            if role in other.params
        }
        wrong = [label for label in _labels(step, *_VIEWS, "forgets", "ran") if label not in said]
        wrong += [label for label in _labels(step, "hides") if label not in said and not label.startswith("$")]
        wrong += [label for label in _labels(step, "system") if label not in prompts]
        for label in dict.fromkeys(wrong):
            yield (
                step.place,
                f'"{label}" is expected, but no step says it',
                "Correct the label, or add a step that says it.",
            )


def view_without_end(requirement: Requirement) -> Iterator[_Complaint]:
    """Find `sees` or `recalls` that do not end with the message of their own step."""
    for _, step in _steps(requirement):
        message = step.params.get("say", step.params.get("returns"))
        for group in groups(step.expect):
            for word in _VIEWS:
                view = group.get(word)
                if isinstance(view, list) and view[-1].removeprefix("verbatim ") != message:
                    what = f'"{word}" ends with "{view[-1]}", but this step says "{message or "nothing"}"'
                    yield step.place, what, "End with the message of this step: the model sees it last."


def modifier_out_of_place(requirement: Requirement) -> Iterator[_Complaint]:
    """Find a modifier that has no meaning there: `sees` is always verbatim, and `recalls` has no `maybe`."""
    for _, step in _steps(requirement):
        for group in groups(step.expect):
            for word, allowed in _MODIFIERS.items():
                view = group.get(word)
                for label in view if isinstance(view, list) else ():
                    modifier = re.match(r"(maybe|each|verbatim|summarised) ", str(label))
                    if modifier and modifier[1] not in allowed:
                        what = f'"{modifier[1]}" has no meaning in "{word}"'
                        yield step.place, what, f"Use one of {', '.join(allowed)}."


def sees_after_compression(requirement: Requirement) -> Iterator[_Complaint]:
    """Find `sees` in or after a turn that compresses: the server decides what stays verbatim."""
    for scenario in requirement.scenarios:
        compressed = False
        for step in scenario.walk():
            compressed = compressed or step.control in {"compress", "control:compress"}
            if compressed and any("sees" in group for group in groups(step.expect)):
                yield step.place, '"sees" is used after a compression', 'Use "recalls" and "summary: true".'


def refusal_without_twin(requirement: Requirement) -> Iterator[_Complaint]:
    """Find a refused request without an accepted one of the same kind: their difference is the reason of the refusal."""
    for scenario in requirement.scenarios:
        accepted = {step.verb for step in scenario.walk() if must_accept(step.expect)}
        for step in scenario.walk():
            if may_refuse(step.expect) and step.verb not in accepted:
                what = f'a "{step.verb}" is refused, and the scenario has no "{step.verb}" that is accepted'
                yield (
                    step.place,
                    what,
                    f'Add a "{step.verb}" that is accepted and differs only in the reason of the refusal.',
                )


def name_of_two_kinds(requirement: Requirement) -> Iterator[_Complaint]:
    """Find a variable that holds two kinds of values."""
    for scenario in requirement.scenarios:
        kinds: dict[str, str] = {}
        for variable, kind, step in uses(scenario):
            if kinds.setdefault(variable, kind) != kind:
                what = f"{variable} is a {kinds[variable]} before, and a {kind} here"
                yield step.place, what, "Use two variables."


def expects_nothing(requirement: Requirement) -> Iterator[_Complaint]:
    """Find a scenario without any expectation: every server that answers passes it."""
    for scenario in requirement.scenarios:
        if not any(step.expect for step in scenario.walk()):
            yield scenario.steps[0].place, "the scenario expects nothing", "Add what a conformant server answers."


def returns_without_call(requirement: Requirement) -> Iterator[_Complaint]:
    """Find `returns` that names a turn in which the model called no tool of the client."""
    for scenario in requirement.scenarios:
        called = {step.params.get("say") for step in scenario.walk() if calls_client(step.params.get("model"))}
        for step in scenario.walk():
            if "returns" in step.params and step.params["returns"] not in called:
                what = (
                    f'"returns: {step.params["returns"]}" names no turn in which the model calls a tool of the client'
                )
                yield step.place, what, 'Name a turn that has "model: calls client".'


def needless_need(requirement: Requirement) -> Iterator[_Complaint]:
    """Find `needs` that are inferred from the steps of every scenario anyway."""
    inferred = [inferred_needs(scenario.steps) for scenario in requirement.scenarios]
    for need in sorted(requirement.needs):
        if inferred and all(need in needs for needs in inferred):
            yield requirement.place, f'"needs: [{need}]" is inferred from the steps', "Remove it."


def discouraged_words(requirement: Requirement) -> Iterator[_Complaint]:
    """Find a text or a scenario name with "should" or "test that": it does not state a fact."""
    for text in (requirement.text, *(scenario.name for scenario in requirement.scenarios)):
        for match in _DISCOURAGED.finditer(text):
            yield requirement.place, f'the text says "{match[0]}"', "State what is true of a conformant server."


def missing_keyword(requirement: Requirement) -> Iterator[_Complaint]:
    """Find a text without the keyword of its level in capitals: a reader of the prose could not tell how binding it is."""
    keyword = requirement.level.value
    if re.search(rf"\b{keyword}\b", requirement.text) is None:
        yield requirement.place, f'the text does not say "{keyword}"', f'Write what the server "{keyword}" do.'


def repeated_scenario_name(requirement: Requirement) -> Iterator[_Complaint]:
    """Find scenarios of one requirement with the same name."""
    names = Counter(scenario.name.casefold() for scenario in requirement.scenarios)
    for name, count in names.items():
        if count > 1:
            yield (
                requirement.place,
                f'{count} scenarios are called "{name}"',
                "Give each a name that says how it differs.",
            )


def short_defect_name(requirement: Requirement) -> Iterator[_Complaint]:
    """Find a defect whose name is one word: it does not say what is broken, and is easily used twice."""
    for defect in requirement.refuted_by:
        if "-" not in defect:
            yield (
                requirement.place,
                f'the name of the defect "{defect}" does not say what is broken',
                "Use two words or more.",
            )


RULES: dict[str, Callable[[Requirement], Iterable[_Complaint]]] = {
    rule.__name__.replace("_", "-"): rule
    for rule in (
        unsaid_label,
        view_without_end,
        modifier_out_of_place,
        sees_after_compression,
        refusal_without_twin,
        name_of_two_kinds,
        expects_nothing,
        returns_without_call,
        needless_need,
        discouraged_words,
        missing_keyword,
        repeated_scenario_name,
        short_defect_name,
    )
}
"""Every rule by its code."""

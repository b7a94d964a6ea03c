"""What the schema cannot see: entries that can be read, and yet check less than they seem to, or nothing.

One function a rule. It knows the vocabulary, and neither the names of Python checks nor those of defects.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from continuity_spec.expectations import groups, may_refuse, must_accept
from continuity_spec.names import uses
from continuity_spec.steps import calls_client, inferred_needs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from continuity_spec.model import Place, Requirement, Scenario, Step

_VIEWS = ("sees", "recalls")
_MODIFIERS = {"sees": ("maybe", "each"), "recalls": ("each", "verbatim", "summarised")}
_DISCOURAGED = re.compile(r"\b(should|test(s|ed)? that)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Problem:
    """One place where an entry breaks a rule of the house."""

    code: str
    place: Place
    entry: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.place}: {self.entry}: {self.what}. {self.remedy} [{self.code}]"


_Finding = tuple["Place", str, str]
"""Where, what is wrong, what to do now."""


def lint_requirements(requirements: Sequence[Requirement]) -> list[Problem]:
    """Apply every rule to every requirement, and to all of them together."""
    found = [
        Problem(code, place, requirement.id, what, remedy)
        for requirement in requirements
        for code, rule in RULES.items()
        for place, what, remedy in rule(requirement)
    ]
    found.extend(_repeated_texts(requirements))
    return sorted(found, key=lambda problem: (problem.place.file, problem.place.line, problem.place.column))


def _repeated_texts(requirements: Iterable[Requirement]) -> Iterator[Problem]:
    first: dict[str, Requirement] = {}
    for requirement in requirements:
        earlier = first.setdefault(requirement.text.casefold(), requirement)
        if earlier is not requirement:
            what = f"the text is that of {earlier.id}"
            yield Problem(
                "repeated-text", requirement.place, requirement.id, what, "Say what this one asks beyond that."
            )


def _steps(requirement: Requirement) -> Iterator[tuple[Scenario, Step]]:
    for scenario in requirement.scenarios:
        for step in scenario.walk():
            yield scenario, step


def _labels(step: Step, *words: str) -> Iterator[str]:
    """Go through what the step expects under these words, without "maybe" and the like."""
    for group in groups(step.expect):
        for word in words:
            listed = group.get(word, ())
            for label in listed if isinstance(listed, list | dict) else ():
                yield re.sub(r"^(maybe|each|verbatim|summarised) ", "", str(label))


def _said(scenario: Scenario) -> set[str]:
    said: set[str] = set()
    for step in scenario.walk():
        history = step.params.get("history", ())
        rows = step.params.get("rows", ())
        said.update(history if isinstance(history, list) else ())
        said.update(label for row in (rows if isinstance(rows, list) else ()) for label in row.get("turns", ()))
        label = str(step.params.get("say", ""))
        said.update({label, *(f"{label}/{number + 1}" for number in range(step.at_once))} if label else ())
    return said


def unsaid_label(requirement: Requirement) -> Iterator[_Finding]:
    """Find a label in sees, recalls, forgets, ran, hides or system that nobody says in the scenario."""
    for scenario, step in _steps(requirement):
        said = _said(scenario)
        prompts = {
            str(other.params[role])
            for other in scenario.walk()
            for role in ("system", "developer")
            if role in other.params
        }
        wrong = [label for label in _labels(step, *_VIEWS, "forgets", "ran") if label not in said]
        wrong += [label for label in _labels(step, "hides") if label not in said and not label.startswith("$")]
        wrong += [label for label in _labels(step, "system") if label not in prompts]
        for label in dict.fromkeys(wrong):
            yield step.place, f'"{label}" is expected, and nobody says it', "Correct the label, or say it."


def view_without_end(requirement: Requirement) -> Iterator[_Finding]:
    """Find `sees` or `recalls` that do not end with what is being said."""
    for _, step in _steps(requirement):
        being_said = step.params.get("say", step.params.get("returns"))
        for group in groups(step.expect):
            for word in _VIEWS:
                view = group.get(word)
                if isinstance(view, list) and view[-1] != being_said:
                    what = f'"{word}" ends with "{view[-1]}", and "{being_said or "nothing"}" is being said'
                    yield step.place, what, "The current message is the last that the model sees."


def modifier_out_of_place(requirement: Requirement) -> Iterator[_Finding]:
    """Find a word before a label that says nothing there: `sees` is verbatim, and `recalls` has no `maybe`."""
    for _, step in _steps(requirement):
        for group in groups(step.expect):
            for word, meant in _MODIFIERS.items():
                view = group.get(word)
                for label in view if isinstance(view, list) else ():
                    modifier = re.match(r"(maybe|each|verbatim|summarised) ", str(label))
                    if modifier and modifier[1] not in meant:
                        what = f'"{modifier[1]}" means nothing in "{word}"'
                        yield step.place, what, f"Use one of {', '.join(meant)}."


def sees_after_compression(requirement: Requirement) -> Iterator[_Finding]:
    """Find `sees` in or after a turn that compresses: what is left verbatim is the server's affair."""
    for scenario in requirement.scenarios:
        compressed = False
        for step in scenario.walk():
            compressed = compressed or step.control in {"compress", "control:compress"}
            if compressed and any("sees" in group for group in groups(step.expect)):
                yield step.place, '"sees" stands after a compression', 'Use "recalls", and "summary: true".'


def refusal_without_twin(requirement: Requirement) -> Iterator[_Finding]:
    """Find a refused request with no accepted one of the same kind: the difference of the two is the reason."""
    for scenario in requirement.scenarios:
        accepted = {step.verb for step in scenario.walk() if must_accept(step.expect)}
        for step in scenario.walk():
            if may_refuse(step.expect) and step.verb not in accepted:
                what = f'the refused "{step.verb}" has no accepted twin in its scenario'
                yield step.place, what, f'Add a "{step.verb}" that differs only in the reason, and is accepted.'


def name_of_two_kinds(requirement: Requirement) -> Iterator[_Finding]:
    """Find a `$name` that stands for two kinds of things."""
    for scenario in requirement.scenarios:
        kinds: dict[str, str] = {}
        for name, kind, step in uses(scenario):
            if kinds.setdefault(name, kind) != kind:
                yield step.place, f"{name} is a {kinds[name]} before, and a {kind} here", "Give the two two names."


def expects_nothing(requirement: Requirement) -> Iterator[_Finding]:
    """Find a scenario without one expectation: every server that answers passes it."""
    for scenario in requirement.scenarios:
        if not any(step.expect for step in scenario.walk()):
            yield scenario.steps[0].place, "the scenario expects nothing", "Say what is seen where it holds."


def returns_without_call(requirement: Requirement) -> Iterator[_Finding]:
    """Find `returns` that names a turn in which the model called no tool of the client."""
    for scenario in requirement.scenarios:
        called = {step.params.get("say") for step in scenario.walk() if calls_client(step.params.get("model"))}
        for step in scenario.walk():
            if "returns" in step.params and step.params["returns"] not in called:
                what = f'"returns: {step.params["returns"]}" names no turn in which the model calls the client'
                yield step.place, what, 'Name the turn in which the model "calls client".'


def needless_need(requirement: Requirement) -> Iterator[_Finding]:
    """Find `needs` that every scenario shows by its steps."""
    shown = [inferred_needs(scenario.steps) for scenario in requirement.scenarios]
    for need in sorted(requirement.needs):
        if shown and all(need in needs for needs in shown):
            yield requirement.place, f'"needs: [{need}]" is shown by the steps', "Take it away."


def discouraged_words(requirement: Requirement) -> Iterator[_Finding]:
    """Find a text or the name of a scenario with "should" or "test that": it states no fact."""
    for text in (requirement.text, *(scenario.name for scenario in requirement.scenarios)):
        for match in _DISCOURAGED.finditer(text):
            yield requirement.place, f'the English says "{match[0]}"', "State what is true of a conformant server."


def repeated_scenario_name(requirement: Requirement) -> Iterator[_Finding]:
    """Find two scenarios of one entry with one name."""
    names = Counter(scenario.name.casefold() for scenario in requirement.scenarios)
    for name, count in names.items():
        if count > 1:
            yield requirement.place, f'{count} scenarios are called "{name}"', "Name what tells them apart."


def short_defect_name(requirement: Requirement) -> Iterator[_Finding]:
    """Find a defect whose name is one word: it does not say what is broken, and will be taken twice."""
    for defect in requirement.refuted_by:
        if "-" not in defect:
            yield requirement.place, f'the defect "{defect}" does not say what is broken', "Use two words or more."


RULES: dict[str, Callable[[Requirement], Iterable[_Finding]]] = {
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
        repeated_scenario_name,
        short_defect_name,
    )
}
"""Every rule by its code."""

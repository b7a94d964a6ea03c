"""One requirement as a page of Markdown: for the documentation site, for `continuity explain`, and for programs that read Markdown.

Pure functions from a requirement, and from sentences that the spec does not have, to text. How a scenario is drawn is a function that the caller chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from continuity_spec.model import Requirement, Scenario
from continuity_spec.render.arrows import Element, elements, elements_of_always
from continuity_spec.render.diagram import UNICODE, draw
from continuity_spec.render.page import option_values, scenario_title

Drawing = Callable[[Sequence[Element]], str]


def text_drawing(drawn: Sequence[Element]) -> str:
    """Draw with characters, in a block of code."""
    return "\n".join(("```text", *draw(drawn, UNICODE), "```"))


@dataclass(frozen=True, slots=True)
class MarkdownPage:
    """How requirements are written. `link` makes a link to another requirement, or leaves its id as it is."""

    defects: Mapping[str, str] = field(default_factory=dict)
    checks: Mapping[str, str] = field(default_factory=dict)
    draw: Drawing = text_drawing
    link: Callable[[str], str] = str

    def render(self, requirement: Requirement, source: str) -> str:
        """Write everything about one requirement. `source` is its entry in YAML."""
        blocks = [
            f"# {requirement.id}",
            f"> {' '.join(requirement.text.split())}",
            "\n".join(self._facts(requirement)),
            f"**Why.** {' '.join(requirement.why.split())}",
            "## How it is checked",
            *self._checking(requirement),
            *self._defects(requirement),
            "## Run it",
            f"```console\n$ continuity run {requirement.id} --target URL\n```",
            "## The entry",
            f"```yaml\n{source}\n```",
        ]
        return "\n\n".join(blocks) + "\n"

    def _facts(self, requirement: Requirement) -> Iterator[str]:
        facts = {
            "level": requirement.level.value,
            "class": requirement.class_name or "none: a draft",
            "applies to": option_values(requirement.when),
            "needs": ", ".join(sorted(requirement.needs)),
            "rests on": ", ".join(map(self._foundation, requirement.rests_on)),
            "seen in": ", ".join(requirement.origin),
        }
        yield from ("| | |", "|---|---|")
        yield from (f"| {name} | {text.replace('|', '¦')} |" for name, text in facts.items() if text)

    def _foundation(self, rests_on: str) -> str:
        identity, _, kind = rests_on.partition(" ")
        return f"{self.link(identity)} {kind}".strip()

    def _checking(self, requirement: Requirement) -> Iterator[str]:
        if requirement.manual is not None:
            yield f"A person answers this question: {requirement.manual}"
        if requirement.check is not None:
            sentence = self.checks.get(requirement.check, "")
            yield f"In Python, by `{requirement.check}`{f': {sentence}' if sentence else '.'}"
        if requirement.always is not None:
            yield "On every such answer of a whole run, whichever scenario asked:"
            yield self.draw(elements_of_always(requirement.always))
        for scenario in requirement.scenarios:
            yield from self._scenario(scenario, requirement)

    def _scenario(self, scenario: Scenario, requirement: Requirement) -> Iterator[str]:
        title = scenario_title(scenario, requirement)
        if title:
            yield f"### {title[0].upper()}{title[1:]}"
        yield self.draw(elements(scenario))

    def _defects(self, requirement: Requirement) -> Iterator[str]:
        if requirement.refuted_by:
            yield "## Defects that it must catch"
            yield "The bundled server can be started with each of them: `continuity serve --defect NAME`."
            yield "\n".join(f"- `{name}`: {self.defects.get(name, '')}" for name in requirement.refuted_by)

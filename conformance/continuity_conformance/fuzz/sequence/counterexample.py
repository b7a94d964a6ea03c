"""A counterexample: a sequence that fails on a target, saved as a requirement file for `continuity run FILE`."""

import hashlib
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from continuity_conformance.core.failure import Unmet
from continuity_conformance.fuzz.sequence.generator import YamlStep
from continuity_spec import Step
from continuity_spec.flow_yaml import flow_yaml
from continuity_spec.load.steps import read_steps
from continuity_spec.load.yaml_document import Document, parse_yaml

_WIDTH: Final = 116
_MAX_REASON: Final = 300
_IDS: Final = 100
_REFUTED_BY: Final = "target-as-found"
"""A requirement names the defect that makes it fail. Here it is the target itself and not a planted defect."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The steps, and the expectation that failed at the last of them."""

    steps: tuple[YamlStep, ...]
    unmet: Unmet

    @property
    def yaml(self) -> str:
        """The steps as YAML. Equal for equal sequences: names and labels are numbered in order."""
        return steps_as_yaml(self.steps)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.yaml.encode()).hexdigest()[:8]

    def requirement_file(self, options: Mapping[str, str]) -> str:
        """Return the text of the requirement file. It applies to targets with the options that its steps rely on."""
        unmet = self.unmet
        failure = f"{unmet.expectation} at step {unmet.number}: expected {unmet.expected}, actual {unmet.actual}"
        reason = " ".join(failure.split())[:_MAX_REASON]
        when = dict(_when(self.steps, options))
        lines = [
            f"- id: FOUND-{int(self.digest, 16) % _IDS:02}",
            "  level: MUST",
            f"  text: A server that keeps the contract MUST play this sequence to its end ({self.digest}).",
            "  why: >-",
            *textwrap.wrap(
                f"Found by chance, and shrunk: {reason}", _WIDTH, initial_indent="    ", subsequent_indent="    "
            ),
            *([f"  when: {flow_yaml(when)}"] if when else []),
            "  steps:",
            *(f"    {line}" for line in self.yaml.splitlines()),
            f"  refuted_by: [{_REFUTED_BY}]",
        ]
        return "\n".join([*lines, ""])

    def save(self, folder: Path, options: Mapping[str, str]) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"found-{self.digest}.yaml"
        path.write_text(self.requirement_file(options), encoding="utf-8")
        return path


def steps_as_yaml(steps: Sequence[YamlStep]) -> str:
    return "\n".join(line for step in steps for line in _lines(step))


def _lines(step: YamlStep) -> list[str]:
    if isinstance(step, str):
        return [f"- {step}"]
    [(verb, params)] = [(word, value) for word, value in step.items() if word != "expect"]
    expect = [f"  expect: {flow_yaml(step['expect'])}"] if "expect" in step else []
    return [f"- {verb}: {flow_yaml(params)}", *expect]


def parsed_steps(steps: Sequence[YamlStep]) -> tuple[Step, ...]:
    """Write the steps as YAML and read them back, so that the steps that are played are the steps that are saved."""
    document = parse_yaml(steps_as_yaml(steps), "found")
    return read_steps(document, document.data or [], ())  # type: ignore[arg-type] # a list, as it was just written


def read_back(steps: Sequence[YamlStep]) -> tuple[Step, ...]:
    """The same as `parsed_steps` without places in a file, in a tenth of the time: most sequences fail nowhere and are not saved."""
    return read_steps(Document("found", None, None), list(steps), ())


def _when(steps: Sequence[YamlStep], options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the options that the expectations of these steps rely on."""
    turns = [params for step in steps if isinstance(step, dict) for params in step.values()]
    if any(params.get("compress") for params in turns):
        yield "compaction", options["compaction"]
        yield "echo", options["echo"]
    if any(isinstance(step, dict) and "chat" in step and "session" not in step["chat"] for step in steps):
        yield "derivation", options["derivation"]

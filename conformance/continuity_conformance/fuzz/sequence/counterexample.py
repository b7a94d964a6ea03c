"""A counterexample: a sequence that a target does not keep, as a requirement file of our own that `continuity run FILE` plays again."""

import hashlib
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from continuity_conformance.core.failure import Unmet
from continuity_conformance.fuzz.sequence.machine import Written
from continuity_spec import Step
from continuity_spec.flow_yaml import flow_yaml
from continuity_spec.load.steps import read_steps
from continuity_spec.load.yaml_document import parse_yaml

_WIDTH: Final = 116
_SAID_AT_MOST: Final = 300
_IDS: Final = 100
_REFUTED_BY: Final = "target-as-found"
"""An entry names what makes it fail. Here that is no planted defect, but the target as it was."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The steps, and what was wrong at the last of them."""

    steps: tuple[Written, ...]
    unmet: Unmet

    @property
    def key(self) -> str:
        """The same for the same sequence: its names and labels are given in order."""
        return written(self.steps)

    @property
    def mark(self) -> str:
        return hashlib.sha256(self.key.encode()).hexdigest()[:8]

    def entry(self, options: Mapping[str, str]) -> str:
        """The requirement file. It holds for targets with the options that its expectations were made for."""
        unmet = self.unmet
        found = f"{unmet.expectation} at step {unmet.number}: expected {unmet.expected}, actual {unmet.actual}"
        said = " ".join(found.split())[:_SAID_AT_MOST]
        when = dict(_when(self.steps, options))
        lines = [
            f"- id: FOUND-{int(self.mark, 16) % _IDS:02}",
            "  level: MUST",
            f"  text: A server that keeps the contract plays this sequence to its end ({self.mark}).",
            "  why: >-",
            *textwrap.wrap(
                f"Found by chance, and shrunk: {said}", _WIDTH, initial_indent="    ", subsequent_indent="    "
            ),
            *([f"  when: {flow_yaml(when)}"] if when else []),
            "  steps:",
            *(f"    {line}" for line in self.key.splitlines()),
            f"  refuted_by: [{_REFUTED_BY}]",
        ]
        return "\n".join([*lines, ""])

    def save(self, folder: Path, options: Mapping[str, str]) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"found-{self.mark}.yaml"
        path.write_text(self.entry(options), encoding="utf-8")
        return path


def written(steps: Sequence[Written]) -> str:
    """The steps as YAML."""
    return "\n".join(line for step in steps for line in _lines(step))


def _lines(step: Written) -> list[str]:
    if isinstance(step, str):
        return [f"- {step}"]
    [(verb, params)] = [(word, value) for word, value in step.items() if word != "expect"]
    expect = [f"  expect: {flow_yaml(step['expect'])}"] if "expect" in step else []
    return [f"- {verb}: {flow_yaml(params)}", *expect]


def as_steps(steps: Sequence[Written]) -> tuple[Step, ...]:
    """The steps as they are read from that YAML, so that what is played is what would be saved."""
    document = parse_yaml(written(steps), "found")
    return read_steps(document, document.data or [], ())  # type: ignore[arg-type] # a list, as it was just written


def _when(steps: Sequence[Written], options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    turns = [params for step in steps if isinstance(step, dict) for params in step.values()]
    if any(params.get("compress") for params in turns):
        yield "compaction", options["compaction"]
        yield "echo", options["echo"]
    if any(isinstance(step, dict) and "chat" in step and "session" not in step["chat"] for step in steps):
        yield "derivation", options["derivation"]

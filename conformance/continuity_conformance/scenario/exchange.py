"""One request of a scenario and its answer, with what the model saw where that was asked."""

from dataclasses import dataclass

from continuity_conformance.http.messages import Answer, Request
from continuity_conformance.http.reading import Reading
from continuity_conformance.probe.view import View
from continuity_spec import Step


@dataclass(slots=True)
class Exchange:
    """`at`: seconds since the scenario began. `broken`: which parts of the store were broken when it was answered."""

    step: Step
    number: str
    verb: str
    principal: str
    request: Request
    answer: Answer
    at: float
    label: str = ""
    mark: str = ""
    reading: Reading | None = None
    view: View | None = None
    seen: tuple[str, ...] | None = None
    broken: frozenset[str] = frozenset()
    summarised: tuple[str, ...] = ()
    replays: str = ""
    """The step that had this answer before: the model was not called for this one."""

"""In which circumstances a failure showed: what had happened to the turns of its scenario, and which request failed."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from continuity_conformance.core.verdicts import Evidence, Result, without_body
from continuity_spec import Requirement, Scenario, Step, load_spec

_PARAMETERS: Final = frozenset({"hang_up", "kill", "compress"})
_VERBS: Final = frozenset({"delete", "restart", "kill", "evict", "break_store", "legacy", "replicas", "upgrade"})
ANOTHER_PRINCIPAL: Final = "another principal"
_UNFINISHED: Final = "an unfinished turn"
_IN_NAMES: Final = {
    **{word: word for word in _PARAMETERS | _VERBS},
    "killed": _UNFINISHED,
    "principals": ANOTHER_PRINCIPAL,
    "rotation": "compress",
}
"""What the name of a Python check tells."""
DISTURBED: Final = frozenset({"hang_up", "kill", "at once", "a failing model"})
"""What interrupts a turn, so that a turn after it may fail for that alone."""
_NUMBER: Final = re.compile(r"\d+")
_REFUSED: Final = re.compile(
    r"(?:status )?(?:[45]\d\d |200, but the answer tells a failure: )(?P<words>.{20,})", re.DOTALL
)
_VARYING: Final = re.compile(r"\S*\d\S*")
_WORDS: Final = 60
_REQUEST: Final = re.compile(r"[\d.]*\s*(?P<verb>\w+)\s*(?:\{(?P<params>.*))?")
_STATUS: Final = re.compile(r"(?:status )?\d{3}")
_NAME: Final = re.compile(r"(?:^|, )(\w+):")
_NO_MATTER: Final = frozenset({"stream", "at_once", "say"})


def circumstances(result: Result, evidence: Evidence) -> frozenset[str]:
    """What happened up to the step that failed, such as a kill, a hang-up or turns at once. Of a Python check, what its name says."""
    requirement = next((each for each in load_spec().requirements if each.id == result.id), None)
    if requirement is None:
        return frozenset()
    if requirement.check is not None:
        return frozenset(circumstance for word, circumstance in _IN_NAMES.items() if word in (requirement.check or ""))
    return frozenset(word for step in _played(requirement, evidence) for word in _of_step(step))


def _played(requirement: Requirement, evidence: Evidence) -> Iterator[Step]:
    number = _NUMBER.match(evidence.step)
    scenario = next((each for each in requirement.scenarios if each.name == evidence.scenario), None)
    return _walked(scenario, int(number[0])) if scenario is not None and number else iter(())


def _walked(scenario: Scenario, last: int) -> Iterator[Step]:
    return (part for step in scenario.steps[:last] for part in step.walk())


def _of_step(step: Step) -> Iterator[str]:
    yield from _PARAMETERS & step.params.keys()
    if "hang_up" in step.params or any(part.verb == "kill" for part in step.during):
        yield _UNFINISHED
    yield from _VERBS & {step.verb}
    if step.at_once > 1 or step.together or step.during:
        yield "at once"
    if isinstance(model := step.params.get("model"), str) and not model.startswith(("calls", "pauses")):
        yield "a failing model"
    if step.params.get("store") is False:
        yield "not stored"
    if "as" in step.params:
        yield ANOTHER_PRINCIPAL


def refusal(evidence: Evidence) -> str:
    """In which words the server refused a request, without what differs from one to the next. Empty if it did not refuse, or without a word."""
    refused = _REFUSED.match(evidence.actual)
    return _VARYING.sub("*", refused["words"])[:_WORDS] if refused else ""


class FailedRequest(NamedTuple):
    """The verb of a request, the names of its parameters, and the status of what was there instead."""

    verb: str
    parameters: frozenset[str]
    status: str


def failed_request(evidence: Evidence) -> FailedRequest:
    found = _REQUEST.match(evidence.step)
    names = frozenset(_NAME.findall(found["params"] or "")) if found else frozenset()
    status = _STATUS.match(without_body(evidence.actual))
    return FailedRequest(found["verb"] if found else "", names - _NO_MATTER, status[0] if status else "")

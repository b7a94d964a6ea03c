"""A requirement in words: what a report says about it besides its verdict.

The question to ask, how it is checked, what a server must build for it and what other servers got wrong. All of it goes into results.json, so that a
report needs no other file.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from continuity_conformance.suite.defects import defects
from continuity_spec import Requirement, Scenario, Step
from continuity_spec.flow_yaml import flow_yaml

_ENDPOINTS: Final[Mapping[str, str]] = {"chat": "POST /v1/chat/completions", "respond": "POST /v1/responses"}
_RESOURCES: Final[Mapping[str, str]] = {"response": "/v1/responses/{id}", "session": "/v1/sessions/{id}"}
_WORK: Final[Mapping[str, str]] = {
    "session": "the continuity header on the answer",
    "announces": "the new id in the stream, before its end marker",
    "response": "ids of responses that can be continued from",
    "like": "answers that give away nothing by their form",
    "sees": "the stored history to the model: whole, in order, once",
    "recalls": "the history to the model, verbatim or in a summary",
    "forgets": "nothing of other turns to the model",
    "summary": "the summary to the model after a compression",
    "system": "the system prompt to the model, once",
    "tools": "tool calls stored together with their results",
    "reads": "one workspace for the tools of the turns that share it",
    "ran": "one model call for one turn",
    "serial": "one turn of a session after the other",
    "valid": "answers that validate against openapi.yaml",
    "agrees": "the same id in header and body",
}
"""What a server must build for an expectation."""
_SURVIVES: Final[Mapping[str, str]] = {
    "restart": "state that survives a restart",
    "kill": "state that survives a kill",
    "evict": "state that survives the eviction of a response",
    "break_store": "a decision for the time in which the store is down",
    "legacy": "an upgrade of old databases in place",
    "replicas": "turns of one session one after the other in all processes",
}


def described(requirement: Requirement) -> dict[str, object]:
    """The fields of results.json about the requirement itself."""
    return {
        "why": requirement.why,
        "origin": list(requirement.origin),
        "how": requirement.how,
        "question": question(requirement),
        "checked": checked(requirement),
        "build": build(requirement),
        "pitfalls": pitfalls(requirement),
        "scenarios": [_scenario(scenario) for scenario in requirement.scenarios],
    }


def question(requirement: Requirement) -> str:
    """The question for a reviewer."""
    if requirement.manual is not None:
        return requirement.manual
    text = requirement.text
    if ". " in text:
        return f"Does all of this hold? {text}"
    # A first word in capitals (POST) stays as it is.
    return f"Does it hold that {text if text[1:2].isupper() else text[:1].lower() + text[1:]}".removesuffix(".") + "?"


def checked(requirement: Requirement) -> str:
    """How it is checked, in one sentence."""
    if requirement.manual is not None:
        return "By review: a person answers, no run can."
    if requirement.always is not None:
        after = " and ".join(sorted(requirement.always.after))
        return f"On every matching answer of the whole run, after {after}."
    if requirement.check is not None:
        return f"By the Python check {requirement.check}."
    named = [scenario.name for scenario in requirement.scenarios if scenario.name]
    number = len(requirement.scenarios)
    return f"By {number} scenario{'s' if number > 1 else ''}{': ' if named else ''}{'; '.join(named)}."


def build(requirement: Requirement) -> list[str]:
    """What a server needs for it: endpoints first, then what its steps expect, then what they must survive."""
    steps = [step for scenario in requirement.scenarios for step in scenario.walk()]
    words = {word for step in steps for word in _words(step.expect)}
    words |= _words(requirement.always.expect) if requirement.always is not None else set()
    verbs = {step.verb for step in steps} | set(requirement.always.after if requirement.always is not None else ())
    parts = [_ENDPOINTS[verb] for verb in _ENDPOINTS if verb in verbs]
    parts += [endpoint for step in steps for endpoint in _resource(step)]
    parts += [work for word, work in _WORK.items() if word in words]
    parts += [work for verb, work in _SURVIVES.items() if verb in verbs]
    # A Python check has no steps; its requirement's text describes it.
    parts = parts or [requirement.text]
    parts += [f"only where {option} is {' or '.join(values)}" for option, values in requirement.when.items()]
    return list(dict.fromkeys(parts))


def _words(expect: object) -> set[str]:
    """The words of an expectation, including its branches."""
    if isinstance(expect, Mapping):
        branches = [value for word, value in expect.items() if str(word).startswith("by ") or word == "either"]
        inner = [group for branch in branches for group in (branch.values() if isinstance(branch, Mapping) else branch)]
        return {str(word) for word in expect}.union(*map(_words, inner))
    return set()


def _resource(step: Step) -> Iterator[str]:
    if step.verb in {"get", "delete"}:
        yield from (f"{step.verb.upper()} {path}" for word, path in _RESOURCES.items() if word in step.params)
    if step.verb == "request":
        yield f"{step.params.get('method', '')} {step.params.get('path', '')}".strip()


def pitfalls(requirement: Requirement) -> list[str]:
    """How servers got it wrong: the defects that were made for it. Those of a pack are known by name only."""
    known = defects()
    return [known[name].text if name in known else name.replace("-", " ") for name in requirement.refuted_by]


def _scenario(scenario: Scenario) -> dict[str, object]:
    return {
        "name": scenario.name,
        "examples": len(scenario.examples),
        "steps": [
            {"number": number, "does": step.text, "expect": flow_yaml(step.expect)[1:-1]}
            for number, step in numbered(scenario.steps)
        ],
    }


def numbered(steps: Sequence[Step], within: str = "") -> Iterator[tuple[str, Step]]:
    """Each step with the number that exchanges refer to. Parts of a step (2.1, 2.2) replace the step."""
    for position, step in enumerate(steps, 1):
        number = f"{within}{position}"
        if not step.together:
            yield number, step
        yield from numbered((*step.together, *step.during), f"{number}.")

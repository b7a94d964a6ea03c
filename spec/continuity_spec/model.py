"""The types of a loaded spec: requirements, scenarios, steps, releases.

They hold what the YAML files say, after it was checked, and answer questions about it. They read no files and send no requests.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from continuity_spec.errors import UnknownRequirement, nearest
from continuity_spec.expectations import refuses

TURNS = frozenset({"chat", "respond"})
"""The verbs that send a turn."""
REQUESTS = TURNS | {"get", "delete", "request"}
"""The verbs that send one HTTP request and get one answer."""

_VARIABLE = re.compile(r"\$[a-z][a-z0-9-]*")
_DISTURBING = frozenset({"restart", "kill", "break_store", "legacy", "replicas", "previous", "evict-by-pressure"})
_CONTROL_VERBS = frozenset({"restart", "kill", "break_store", "legacy", "replicas"})
_RELEASE_VERBS = frozenset({"start_previous", "upgrade"})


class Level(enum.StrEnum):
    """The keyword of a requirement, as RFC 2119 and RFC 8174 define it."""

    MUST = "MUST"
    MUST_NOT = "MUST NOT"
    SHOULD = "SHOULD"
    SHOULD_NOT = "SHOULD NOT"
    MAY = "MAY"

    @property
    def binding(self) -> bool:
        """True for MUST and MUST NOT."""
        return self in {Level.MUST, Level.MUST_NOT}

    @property
    def forbids(self) -> bool:
        """True if the text describes what must not happen."""
        return self in {Level.MUST_NOT, Level.SHOULD_NOT}


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is written in a file. Lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Step:
    """One action of a scenario, and what is expected of its answer."""

    verb: str
    params: Mapping[str, object]
    expect: Mapping[str, object]
    at_once: int
    """How many copies of the request are sent at the same time."""
    during: tuple[Step, ...]
    """The steps that are played while the model holds back the answer of this turn."""
    together: tuple[Step, ...]
    """The steps that are played at the same time; only for the verb `together`."""
    place: Place
    text: str
    """The step on one line, without its expectations."""

    def walk(self) -> Iterator[Step]:
        """Yield this step and all steps inside it, in the order of the file."""
        yield self
        for part in (*self.together, *self.during):
            yield from part.walk()

    @property
    def control(self) -> str | None:
        """The control that this step needs, without the steps inside it. `compress` and `kill` are parameters of a turn."""
        if self.verb in _CONTROL_VERBS:
            return self.verb
        if self.verb in _RELEASE_VERBS:
            return "previous"
        if self.verb == "evict":
            return "evict-by-pressure" if self.params.get("by") == "pressure" else "evict"
        if self.verb == "control":
            return f"control:{self.params['name']}"
        return next((name for name in ("kill", "compress") if self.params.get(name) is True), None)


@dataclass(frozen=True)
class Scenario:
    """Steps that check a requirement, or one aspect of it. It depends on no other scenario."""

    name: str
    steps: tuple[Step, ...]
    when: Mapping[str, tuple[str, ...]]
    """The option values that it applies to: those of the requirement and its own."""
    needs: frozenset[str]
    """What the target must offer: declared by the requirement, by the scenario, or inferred from the steps."""
    examples: tuple[Mapping[str, object], ...]
    """The scenario is played once for each of them."""
    vectors: str | None
    """The file that the examples come from."""
    copies: int
    """How many copies of the scenario are played at the same time."""
    rests_on: tuple[str, ...] = ()
    """More basic requirements: where one of them fails in the same way, the scenario is blocked by it. `ID KIND`: only by failures of this kind."""

    def walk(self) -> Iterator[Step]:
        """Yield all steps, also those inside others, in the order of the file."""
        for step in self.steps:
            yield from step.walk()

    @cached_property
    def controls(self) -> frozenset[str]:
        """The controls that its steps need."""
        return frozenset(step.control for step in self.walk() if step.control is not None)

    @property
    def disturbing(self) -> bool:
        """True if it would affect other scenarios that use the same server."""
        return not _DISTURBING.isdisjoint(self.controls)

    @property
    def principals(self) -> frozenset[str]:
        """Who sends requests."""
        return frozenset(str(step.params.get("as", "alice")) for step in self.walk() if step.verb in REQUESTS)

    @property
    def uses_slugs(self) -> bool:
        """True if a step continues a conversation by its slug."""
        return any("conversation" in step.params for step in self.walk() if step.verb == "respond")

    @property
    def varies_slug_form(self) -> bool:
        """True if a slug is sent as an object, or as null."""
        sent = [step.params["conversation"] for step in self.walk() if "conversation" in step.params]
        return any(slug is None or isinstance(slug, Mapping) for slug in sent)

    @property
    def chooses_slug_text(self) -> bool:
        """True if the exact text of a slug matters: it is written in the step or an example, and is not expected to be refused."""
        fields = {f"${field}" for example in self.examples for field in example}
        return any(
            _is_chosen(step.params.get("conversation"), fields) for step in self.walk() if not refuses(step.expect)
        )

    @property
    def needs_a_session_id_of_the_target(self) -> bool:
        """True if a request sends a session id that the target chose and revealed in an earlier answer."""
        sent: set[str] = set()
        revealed: set[str] = set()
        for step in self.walk():
            own = set(_strings(step.params.get("session"))) | set(_strings(step.params.get("params")))
            if own & revealed:
                return True
            sent |= own
            revealed |= set(_expected_sessions(step.expect)) - sent
        return False

    @property
    def uses_model(self) -> bool:
        """True if the probe model must do more than record and answer."""
        return any("model" in step.params or step.during or _leaves_unanswered(step) for step in self.walk())


_CLIENT_CALLS = ("calls client", "calls client twice", "calls client as before", "says and calls client")


def calls_client(model: object) -> bool:
    """True if the model calls a tool of the client in this turn, alone or together with a tool of the target."""
    return model in _CLIENT_CALLS or (isinstance(model, dict) and "calls" in model)


def _leaves_unanswered(step: Step) -> bool:
    """True if the client hangs up before the first piece of an answer: the model must hold it until then."""
    hang_up = step.params.get("hang_up")
    return hang_up == "early" or (hang_up is True and step.params.get("stream") is not True)


def _is_chosen(slug: object, fields: AbstractSet[str]) -> bool:
    return isinstance(slug, str) and (slug in fields or _VARIABLE.fullmatch(slug) is None)


def _strings(value: object) -> Iterator[str]:
    """Find all strings in a value of any shape."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _strings(tuple(value.values()))
    elif isinstance(value, Sequence):
        for each in value:
            yield from _strings(each)


def _expected_sessions(expect: object) -> Iterator[str]:
    """Find the session variables that expectations name, also inside their groups."""
    if isinstance(expect, Mapping):
        for word, value in expect.items():
            yield from _strings(value) if word in {"session", "announces"} else _expected_sessions(value)
    elif isinstance(expect, Sequence) and not isinstance(expect, str):
        for each in expect:
            yield from _expected_sessions(each)


@dataclass(frozen=True, slots=True)
class Always:
    """What must hold for every matching answer of a run."""

    after: frozenset[str]
    """The verbs whose answers match."""
    answered: object
    """The status of the answers that match."""
    streamed: bool | None
    """True: only streamed answers match; False: only the others; None: both."""
    expect: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement of the spec. It has exactly one of scenarios, always, check and manual."""

    id: str
    area: str
    level: Level
    text: str
    why: str
    origin: tuple[str, ...]
    when: Mapping[str, tuple[str, ...]]
    needs: frozenset[str]
    scenarios: tuple[Scenario, ...]
    always: Always | None
    check: str | None
    """The name of the Python check."""
    manual: str | None
    """The question that a reviewer answers."""
    refuted_by: tuple[str, ...]
    """The defects that must make its check fail."""
    place: Place
    pack: str = ""
    """The pack that it comes from; empty for a requirement of the bundled spec."""
    class_name: str = ""
    """The conformance class that it belongs to; empty for a draft."""
    rests_on: tuple[str, ...] = ()
    """More basic requirements that it or one of its scenarios rests on."""

    @property
    def how(self) -> str:
        """How it is checked: scenario, always, check or manual."""
        if self.always is not None:
            return "always"
        if self.check is not None:
            return "check"
        return "manual" if self.manual is not None else "scenario"

    @property
    def length(self) -> int:
        """How many steps are played, counting each scenario once for each of its examples."""
        return sum(len(scenario.steps) * max(1, len(scenario.examples)) for scenario in self.scenarios)


@dataclass(frozen=True, slots=True)
class Release:
    """A release of the spec: a fixed list of requirement ids."""

    name: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConformanceClass:
    """A claim that a server may make, and the requirements behind it."""

    name: str
    claim: str
    requires: tuple[str, ...]
    """The classes that must be conformant too before this one can be claimed."""
    ids: tuple[str, ...]
    """Its requirements, in the order in which it is easiest to build them."""
    decides: bool = True
    """False: it decides the verdict of a run only where the user names it."""
    essential: str = ""
    """A server to which this requirement does not apply lacks the feature that the claim is about."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Scenarios across the classes that are run together. It is not part of the ladder of classes."""

    name: str
    claim: str
    scenarios: Mapping[str, tuple[str, ...]]
    """The names of the scenarios by requirement id; an empty tuple means all scenarios of the requirement."""


@dataclass(frozen=True, slots=True)
class Spec:
    """All requirements, in the order of the files, the releases by name, and the conformance classes from the easiest on."""

    requirements: tuple[Requirement, ...]
    releases: Mapping[str, Release]
    classes: tuple[ConformanceClass, ...] = ()
    selections: tuple[Selection, ...] = ()

    def requirement(self, wanted: str) -> Requirement:
        """Find the requirement with this id."""
        by_id = {requirement.id: requirement for requirement in self.requirements}
        if wanted not in by_id:
            meant = nearest(wanted, by_id)
            hint = f'Did you mean "{meant}"?' if meant else "Ids are listed by: continuity spec list"
            raise UnknownRequirement(wanted, "no requirement has this id", hint)
        return by_id[wanted]

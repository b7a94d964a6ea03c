"""The types that a loaded spec consists of: requirements, scenarios, steps, releases.

They are what is written in the YAML files, checked and at hand. They know neither files nor HTTP, and do nothing.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from continuity_spec.errors import UnknownRequirement, suggestion
from continuity_spec.expectations import refuses

TURNS = frozenset({"chat", "respond"})
"""The verbs that are a turn."""
REQUESTS = TURNS | {"get", "delete", "request"}
"""The verbs that send one HTTP request and get one answer."""

_NAME = re.compile(r"\$[a-z][a-z0-9-]*")
_DISTURBING = frozenset({"restart", "kill", "break_store", "legacy", "evict-by-pressure"})
_CONTROL_VERBS = frozenset({"restart", "kill", "break_store", "legacy"})


class Level(enum.StrEnum):
    """How much a requirement binds (RFC 2119, RFC 8174)."""

    MUST = "MUST"
    MUST_NOT = "MUST NOT"
    SHOULD = "SHOULD"
    SHOULD_NOT = "SHOULD NOT"
    MAY = "MAY"

    @property
    def binding(self) -> bool:
        return self in {Level.MUST, Level.MUST_NOT}

    @property
    def forbids(self) -> bool:
        """Whether the text says what must not be so."""
        return self in {Level.MUST_NOT, Level.SHOULD_NOT}


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is written. Lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a scenario does, and what is expected of it."""

    verb: str
    params: Mapping[str, object]
    expect: Mapping[str, object]
    at_once: int
    during: tuple[Step, ...]
    together: tuple[Step, ...]
    place: Place
    text: str

    def walk(self) -> Iterator[Step]:
        """Go through this step and all steps inside it, in written order."""
        yield self
        for part in (*self.together, *self.during):
            yield from part.walk()

    @property
    def control(self) -> str | None:
        """The control that this step itself needs (`compress` stands beside a turn)."""
        if self.verb in _CONTROL_VERBS:
            return self.verb
        if self.verb == "evict":
            return "evict-by-pressure" if self.params.get("by") == "pressure" else "evict"
        if self.verb == "control":
            return f"control:{self.params['name']}"
        return "compress" if self.params.get("compress") is True else None


@dataclass(frozen=True, slots=True)
class Scenario:
    """Steps that check a requirement, or one side of it. Independent of every other scenario."""

    name: str
    steps: tuple[Step, ...]
    when: Mapping[str, tuple[str, ...]]
    """The option values that it applies to: its entry's and its own."""
    needs: frozenset[str]
    """What the target must offer: its entry's, its own, and what the steps show."""
    examples: tuple[Mapping[str, object], ...]
    vectors: str | None
    copies: int

    def walk(self) -> Iterator[Step]:
        """Go through all steps, those inside others too, in written order."""
        for step in self.steps:
            yield from step.walk()

    @property
    def controls(self) -> frozenset[str]:
        return frozenset(step.control for step in self.walk() if step.control is not None)

    @property
    def disturbing(self) -> bool:
        """Whether other scenarios on the same server would notice."""
        return not _DISTURBING.isdisjoint(self.controls)

    @property
    def principals(self) -> frozenset[str]:
        return frozenset(str(step.params.get("as", "alice")) for step in self.walk() if step.verb in REQUESTS)

    @property
    def uses_slugs(self) -> bool:
        return any("conversation" in step.params for step in self.walk() if step.verb == "respond")

    @property
    def names_slugs(self) -> bool:
        """Whether a slug is used whose very text the scenario chooses: one of an example, or a literal, and not to see it refused."""
        fields = {f"${field}" for example in self.examples for field in example}
        return any(_chosen(step.params.get("conversation"), fields) for step in self.walk() if not refuses(step.expect))

    @property
    def goes_on_in_a_told_session(self) -> bool:
        """Whether a session is sent that only the target could tell."""
        sent: set[str] = set()
        told: set[str] = set()
        for step in self.walk():
            own = set(_texts(step.params.get("session"))) | set(_texts(step.params.get("params")))
            if own & told:
                return True
            sent |= own
            told |= set(_expected_sessions(step.expect)) - sent
        return False

    @property
    def uses_model(self) -> bool:
        """Whether the probe model must act, and not only look on."""
        return any("model" in step.params or step.during for step in self.walk())


def _chosen(slug: object, fields: AbstractSet[str]) -> bool:
    return isinstance(slug, str) and (slug in fields or _NAME.fullmatch(slug) is None)


def _texts(value: object) -> Iterator[str]:
    """Find all texts in a value of any shape."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts(tuple(value.values()))
    elif isinstance(value, Sequence):
        for each in value:
            yield from _texts(each)


def _expected_sessions(expect: object) -> Iterator[str]:
    """Find the sessions that an expectation names, also in its branches."""
    if isinstance(expect, Mapping):
        for word, value in expect.items():
            yield from _texts(value) if word in {"session", "announces"} else _expected_sessions(value)
    elif isinstance(expect, Sequence) and not isinstance(expect, str):
        for each in expect:
            yield from _expected_sessions(each)


@dataclass(frozen=True, slots=True)
class Always:
    """What holds on every matching answer of the whole run."""

    after: frozenset[str]
    answered: object
    streamed: bool | None
    expect: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Requirement:
    """One entry of the spec. Exactly one of scenarios, always, check and manual says how it is checked."""

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
    manual: str | None
    refuted_by: tuple[str, ...]
    place: Place
    pack: str = ""
    """The pack that it comes from; empty for the spec's own."""

    @property
    def how(self) -> str:
        """One of scenario, always, check, manual."""
        if self.always is not None:
            return "always"
        if self.check is not None:
            return "check"
        return "manual" if self.manual is not None else "scenario"

    @property
    def length(self) -> int:
        """How many steps are played: those of each scenario, for each of its examples."""
        return sum(len(scenario.steps) * max(1, len(scenario.examples)) for scenario in self.scenarios)


@dataclass(frozen=True, slots=True)
class Release:
    """The frozen list of ids that make up a release of the spec."""

    name: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spec:
    """All requirements, in the order of their files, and the releases."""

    requirements: tuple[Requirement, ...]
    releases: Mapping[str, Release]

    def requirement(self, wanted: str) -> Requirement:
        """Find the requirement with this id."""
        by_id = {requirement.id: requirement for requirement in self.requirements}
        if wanted not in by_id:
            raise UnknownRequirement(wanted, "no requirement has this id", suggestion(wanted, by_id))
        return by_id[wanted]

"""The context of a scenario: one server, and what all scenarios of a run share."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from continuity_conformance.core.budget import Budget
from continuity_conformance.core.verdicts import Result
from continuity_conformance.http.client import AnyTransport
from continuity_conformance.http.messages import origin
from continuity_conformance.probe.reply import ModelCall
from continuity_conformance.probe.script import Script
from continuity_conformance.scenario.places import OnePlace, Places
from continuity_conformance.target.controls import Controls
from continuity_conformance.target.profile import Profile
from continuity_conformance.target.response_cache import ResponseCache
from continuity_conformance.target.server import Server
from continuity_spec.openapi.answers import AnswerValidator

Observed = Literal["probe", "answers", "nothing"]

TRAIT_REASONS: Final[Mapping[str, str]] = {
    "header": "the target takes the session from no header",
    "header-on-responses": "the target takes no continuity header on /v1/responses",
    "several-headers": "the target declares one continuity header",
    "user-ignored": "the target declares that `user` names a session",
}
"""Needs of scenarios that are no offers, with what is said about a target that does not meet them."""
TRAITS: Final = frozenset(TRAIT_REASONS)


class Observer(Protocol):
    """The probe model, in this process or in another one."""

    async def script(self, mark: str, script: Script) -> None: ...
    async def arrived(self, mark: str) -> None: ...
    async def release(self, mark: str) -> None: ...
    async def call(self, number: int) -> ModelCall | None: ...
    async def calls(self, marks: frozenset[str]) -> list[ModelCall]: ...


@dataclass(frozen=True, slots=True)
class Declared:
    """What a target states about itself in its capabilities. What the profile says, and the kit's defaults, are no claims of the target."""

    header: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    offers: frozenset[str] | None = None
    single_user: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """What is known about the target after calibration."""

    profile: Profile
    header: str
    options: Mapping[str, str]
    offers: frozenset[str]
    observed: Observed
    has_api: bool
    single_user: bool
    declared: Declared = field(default_factory=Declared)
    other_headers: tuple[str, ...] = ()
    """More headers that name the session, in the order of their precedence after `header`."""
    refuses_header_on_responses: bool = False
    """ECHO-11 allows that. The calibration tries it once."""

    @property
    def missing_traits(self) -> Mapping[str, str]:
        """The needs of scenarios that are no offers and that this target does not meet, each with the reason."""
        met = {
            "header": not self.profile.body and self.names_sessions,
            "header-on-responses": not self.refuses_header_on_responses and self.names_sessions,
            "several-headers": bool(self.other_headers),
            "user-ignored": not self.profile.sessions_by_user and self.profile.body != "user",
        }
        return {trait: TRAIT_REASONS[trait] for trait, is_met in met.items() if not is_met}

    @property
    def names_sessions(self) -> bool:
        """Whether a client can name a session. A target without chat has a header for that only if somebody says so."""
        named = self.profile.body or self.profile.header or self.declared.header
        return bool(named) or "chat" in self.offers

    @property
    def takes_slugs(self) -> bool:
        return "responses" in self.offers and self.profile.slugs != "none"


@dataclass(slots=True)
class Context:
    """One server, and the tools of the run. `labels` names every mark of the run, so that turns of other scenarios are recognised."""

    target: Target
    server: Server
    transport: AnyTransport
    controls: Controls
    observer: Observer | None
    labels: dict[str, str]
    decided: Mapping[str, Result]
    """The results so far, for checks that draw conclusions from them."""
    budget: Budget = field(default_factory=Budget)
    cache: ResponseCache = field(default_factory=ResponseCache)
    """Room for responses on the server, where scenarios share it."""
    shared: dict[str, object] = field(default_factory=dict)
    """State that checks share, by a name of their choice."""
    places: Places = field(default_factory=OnePlace)
    """Where the sequences of a check play."""
    at_once: int = 1
    """How many generated requests a check sends at the same time."""

    @property
    def turns_sent(self) -> int:
        """How many POST requests the kit has sent to this server."""
        return self.transport.posts[origin(self.server.url)]

    @property
    def contract(self) -> AnswerValidator:
        """Validates answers against openapi.yaml, with the continuity header that this target uses."""
        return _contract(self.target.header, told=self.target.options["tells"] != "nothing")

    @property
    def constants(self) -> Mapping[str, str]:
        others = self.target.other_headers
        second = {"SECOND_HEADER": others[0]} if others else {}
        return {"HEADER": self.target.header, **second, "ORIGIN": self.target.profile.origin}


@functools.cache
def _contract(header: str, *, told: bool) -> AnswerValidator:
    return AnswerValidator(header, header_required=told)

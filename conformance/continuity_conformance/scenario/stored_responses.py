"""How many responses a scenario stores at most, from its steps."""

from collections.abc import Iterable
from typing import Final

from continuity_conformance.target.profile import Profile
from continuity_spec import Step

_RESPONSES: Final = "/v1/responses"


def stored_responses(steps: Iterable[Step], profile: Profile) -> int:
    """The number of responses that these steps store, those inside other steps included. A turn that is refused counts too."""
    return sum(_of(step, profile) for outer in steps for step in outer.walk())


def _of(step: Step, profile: Profile) -> int:
    if step.verb == "request":
        return int(step.params.get("method") == "POST" and str(step.params.get("path", "")).endswith(_RESPONSES))
    if step.verb != "respond" or step.params.get("store") is False:
        return 0
    fillers = profile.filling.turns if profile.filling and step.params.get("compress") is True else 0
    return min(step.at_once, profile.limits.at_once) + fillers

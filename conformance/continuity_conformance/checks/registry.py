"""The Python checks by name, and the sets of checks that a run treats in a special way."""

from collections.abc import Awaitable, Callable
from typing import Final

from continuity_conformance.scenario.dialogue import Dialogue
from continuity_spec import Requirement

Check = Callable[[Dialogue], Awaitable[None]]
CHECKS: Final[dict[str, Check]] = {}
DISTURBING: Final[dict[str, frozenset[str]]] = {}
"""Checks that disturb others on the same server, with the controls that they need."""
COSTLY: Final[set[str]] = set()
"""Checks that take longer than all calm scenarios together."""
SEEDED: Final[set[str]] = set()
"""Checks that generate their data from the seed of the budget."""
CAMPAIGN_CHECKS: Final[set[str]] = set()
"""Seeded checks that read the findings of one campaign. It runs once, so all of them are on one server."""
PACED: Final[set[str]] = set()
"""Checks that store many responses and make room for each of them in the target's cache."""
KEYED: Final[set[str]] = set()
"""Checks about keys: they do not apply to a target without keys."""
CONCLUDING: Final[set[str]] = set()
"""Checks that read the results of the other requirements."""


class NameTakenError(Exception):
    """Two checks have the same name, so a requirement that names it is ambiguous."""


def check(function: Check) -> Check:
    """Register a check under its name. A name can be used by one module only."""
    registered = CHECKS.setdefault(function.__name__, function)
    if registered.__module__ != function.__module__:
        raise NameTakenError(
            f'the check name "{function.__name__}" of {function.__module__} is already used by {registered.__module__}'
        )
    CHECKS[function.__name__] = function
    return function


def disturbing(*controls: str) -> Callable[[Check], Check]:
    """Mark a check that stops or restarts the server: it runs alone, and only if the target has these controls."""

    def mark(function: Check) -> Check:
        DISTURBING[function.__name__] = frozenset(controls)
        return function

    return mark


def costly(function: Check) -> Check:
    """Mark a check that starts its own server or sends a thousand requests.

    The kill matrix plays it only on the defects that it was made for.
    """
    COSTLY.add(function.__name__)
    return function


def paced(function: Check) -> Check:
    """Mark a check that makes room for its responses itself (`Context.cache`)."""
    PACED.add(function.__name__)
    return function


def keyed(function: Check) -> Check:
    """Mark a check about keys. One key is enough for it."""
    KEYED.add(function.__name__)
    return function


def seeded(function: Check) -> Check:
    """Mark a check that generates its data: a failure names the seed. It sends many requests, so it is costly too."""
    SEEDED.add(function.__name__)
    return paced(costly(function))


def concluding(function: Check) -> Check:
    """Mark a check that reads the results of other requirements: it runs after them."""
    CONCLUDING.add(function.__name__)
    return function


def disturbs(requirement: Requirement) -> bool:
    """Whether checking a requirement disturbs the other scenarios on the same server."""
    return requirement.check in DISTURBING or any(scenario.disturbing for scenario in requirement.scenarios)

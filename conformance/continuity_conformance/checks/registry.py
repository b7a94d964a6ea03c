"""Where Python checks register under their names, which of them disturb the server that they play on, cost much, make up their data, or rest on the results of others."""

from collections.abc import Awaitable, Callable
from typing import Final

from continuity_conformance.scenario.dialogue import Dialogue
from continuity_spec import Requirement

Check = Callable[[Dialogue], Awaitable[None]]
CHECKS: Final[dict[str, Check]] = {}
DISTURBING: Final[dict[str, frozenset[str]]] = {}
"""The checks that others on the same server would notice, and the controls that they need for it."""
COSTLY: Final[set[str]] = set()
"""The checks that take longer than all calm scenarios together."""
SEEDED: Final[set[str]] = set()
"""The checks that make up their data, from the seed of the budget."""
SHARING: Final[set[str]] = set()
"""Those of them that ask what one campaign found, which is played once: they are on one server."""
CONCLUDING: Final[set[str]] = set()
"""The checks that rest on the results of the run."""


class NameTakenError(Exception):
    """Two checks have one name: an entry that names it would be checked by either."""


def check(function: Check) -> Check:
    """Register a check under its name, which is taken once."""
    taken = CHECKS.setdefault(function.__name__, function)
    if taken.__module__ != function.__module__:
        raise NameTakenError(f'the check "{function.__name__}" of {function.__module__} is one of {taken.__module__}')
    CHECKS[function.__name__] = function
    return function


def disturbing(*controls: str) -> Callable[[Check], Check]:
    """Mark a check that stops or restarts the server: it plays alone, and only where there are these controls."""

    def mark(function: Check) -> Check:
        DISTURBING[function.__name__] = frozenset(controls)
        return function

    return mark


def costly(function: Check) -> Check:
    """Mark a check that starts a server of its own or asks a thousand times: on a defect that it was not made for it is left out of the matrix."""
    COSTLY.add(function.__name__)
    return function


def seeded(function: Check) -> Check:
    """Mark a check that makes up its data: a failure names the seed. A thousand requests are costly, too."""
    SEEDED.add(function.__name__)
    return costly(function)


def concluding(function: Check) -> Check:
    """Mark a check that rests on the results of others: it plays when they are decided."""
    CONCLUDING.add(function.__name__)
    return function


def disturbs(requirement: Requirement) -> bool:
    """Whether checking a requirement disturbs the other scenarios on the same server."""
    return requirement.check in DISTURBING or any(scenario.disturbing for scenario in requirement.scenarios)

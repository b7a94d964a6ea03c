"""The Python checks by name, and the sets of checks that a run treats in a special way."""

from collections.abc import Awaitable, Callable
from typing import Final

from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.scenario.context import Context
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_spec import Requirement

Check = Callable[[Dialogue], Awaitable[None]]
Condition = Callable[[Context], tuple[Verdict, str] | None]
CONDITIONS: Final[dict[str, Condition]] = {}
"""What a check needs of a target beyond the offers and controls of its requirement: the verdict and the reason if it is not met."""
_BY_PROXY: Final = "a trusted proxy in front of the target says who sends a request, so it needs no key"
CHECKS: Final[dict[str, Check]] = {}
DISTURBING: Final[dict[str, frozenset[str]]] = {}
"""Checks that disturb others on the same server, with the controls that they need."""
COSTLY: Final[set[str]] = set()
"""Checks that take longer than all calm scenarios together."""
SEEDED: Final[set[str]] = set()
"""Checks that generate their data from the seed of the budget."""
CAMPAIGN_CHECKS: Final[set[str]] = set()
"""Seeded checks that read the findings of one campaign. It runs once, so all of them are on one server."""
IN_SEQUENCES: Final[set[str]] = set()
"""Seeded checks that play sequences, each of which is a scenario of its own and takes a place on the server."""
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
    """Mark a check that starts its own server or sends hundreds of requests.

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


def in_sequences(function: Check) -> Check:
    """Mark a check that generates sequences, and plays them side by side where it does not disturb others."""
    IN_SEQUENCES.add(function.__name__)
    return seeded(function)


def concluding(function: Check) -> Check:
    """Mark a check that reads the results of other requirements: it runs after them."""
    CONCLUDING.add(function.__name__)
    return function


def disturbs(requirement: Requirement) -> bool:
    """Whether checking a requirement disturbs the other scenarios on the same server."""
    return requirement.check in DISTURBING or any(scenario.disturbing for scenario in requirement.scenarios)


# Conditions: the scheduler asks before it plays a check, and the doctor asks for its forecast.


def on(condition: Condition) -> Callable[[Check], Check]:
    """Mark a check that is played only on a target that meets this condition."""

    def mark(function: Check) -> Check:
        CONDITIONS[function.__name__] = condition
        return function

    return mark


def second_principal(context: Context) -> tuple[Verdict, str] | None:
    if "bob" in context.target.profile.everyone:
        return None
    return Verdict.NOT_TESTED, "no key of a second principal: add bob to `principals` of the profile"


def a_key(context: Context) -> tuple[Verdict, str] | None:
    profile = context.target.profile
    if profile.principals.get("alice"):
        return None
    if profile.identities:
        return Verdict.NOT_APPLICABLE, _BY_PROXY
    return Verdict.NOT_TESTED, "the profile names no key, so no key can be missing or wrong"


def a_server_without_keys(context: Context) -> tuple[Verdict, str] | None:
    """The target itself, if it has no keys, or a process of it that the kit can start without any."""
    profile = context.target.profile
    if profile.identities and not profile.principals:
        return Verdict.NOT_APPLICABLE, _BY_PROXY
    keyless = context.server.started is not None and profile.process is not None and profile.process.keyless
    if not profile.principals or keyless:
        return None
    return Verdict.NOT_TESTED, "no command that starts the target without a key: add process.keyless to the profile"


def a_server_for_one_person(context: Context) -> tuple[Verdict, str] | None:
    """A target that one person alone reaches and that wants no key, or a process of it that the kit can start like that."""
    profile = context.target.profile
    if profile.any_origin:
        return Verdict.NOT_APPLICABLE, "the target allows web pages of every site on purpose (`origin` of the profile)"
    if context.server.started is not None and profile.process is not None and profile.process.single_user:
        return None
    if profile.identities and not profile.principals:
        return Verdict.NOT_APPLICABLE, _BY_PROXY
    if profile.principals or profile.headers:
        return (
            Verdict.NOT_APPLICABLE,
            "a request without a key, or without `headers` of the profile, is not for this target",
        )
    if not context.target.single_user:
        return (
            Verdict.NOT_TESTED,
            "nobody says that one person alone reaches the target: then add `single_user: true` to the profile",
        )
    return None


def a_known_limit(context: Context) -> tuple[Verdict, str] | None:
    if context.target.profile.limits.body:
        return None
    return (
        Verdict.NOT_TESTED,
        "the largest body that the target accepts is not known: add `limits: {body: …}` to the profile",
    )


def a_started_process(context: Context) -> tuple[Verdict, str] | None:
    if context.server.started is not None:
        return None
    return Verdict.NOT_TESTED, "the kit did not start the target, so it cannot see its open files"

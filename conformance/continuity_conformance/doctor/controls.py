"""What the kit can make happen to the server: each control, who provides it, and what a missing one leaves untested."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from continuity_conformance.checks.registry import DISTURBING
from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.doctor.findings import ControlFinding, Topic
from continuity_conformance.doctor.state import SurveyState
from continuity_conformance.run.applicability import obstacle_to, scenarios
from continuity_conformance.run.calibrate import ask, claims_in
from continuity_conformance.scenario.context import Context
from continuity_conformance.target.control_context import API, CONTROL_FIELD, PACK_CONTROLS, RELEASE_CONTROLS
from continuity_spec import Requirement

_PROCESS: Final = "`process:`"
_ANY_WAY: Final = "the control API, or `controls:`"
_NOT_THERE: Final = frozenset({0, 404, 405, 501})
_HARMLESS: Final = {"fault": {"what": "read", "on": False}}
"""What a control is asked for. The others get an object without the fields that they need."""
_SHOWN: Final = 5


class _Known(NamedTuple):
    """A control as users call it, the needs of scenarios that it meets, and how a target gets it."""

    name: str
    needs: frozenset[str]
    way: str


_KNOWN: Final = (
    _Known("restart", frozenset({"restart"}), _PROCESS),
    _Known("kill", frozenset({"kill"}), _PROCESS),
    _Known("replicas", frozenset({"replicas"}), _PROCESS),
    _Known("evict", frozenset({"evict"}), _ANY_WAY),
    _Known("cache pressure", frozenset({"evict-by-pressure"}), "`limits: {responses: N}`"),
    _Known("compress", frozenset({"compress", "control:compress"}), _ANY_WAY),
    _Known("fault", frozenset({"break_store"}), _ANY_WAY),
    _Known("fork", frozenset({"control:fork"}), _ANY_WAY),
    _Known("link", frozenset({"control:link"}), _ANY_WAY),
    _Known("lineage", frozenset({"control:lineage"}), _ANY_WAY),
    _Known("old database", frozenset({"legacy"}), "`process:` and `legacy:`"),
    _Known("previous release", frozenset({"previous"}), "`process:` and `previous:`"),
)


async def try_control_api(state: SurveyState, context: Context, declared: object) -> None:
    """Find out which operations the control API has. Each is asked for something that changes nothing; one that is missing answers like a path that nobody has."""
    token = state.profile.token
    if not token:
        if claims_in(declared).get("controls") is True:
            state.add(
                Topic.CONTROLS, "it declares the control API: give its token in a profile, controls: {token: $TOKEN}"
            )
        return

    async def asked(name: str, body: object) -> tuple[int, str]:
        answer = await ask(context, "POST", f"{API}/{name}", body, [(CONTROL_FIELD, token)])
        return answer.status, answer.text

    missing = await asked("continuity-none", {})
    answers = {name: await asked(name, _HARMLESS.get(name, {})) for name in RELEASE_CONTROLS}
    absent = frozenset(
        name for name, (status, text) in answers.items() if (status, text) == missing and status in _NOT_THERE
    )
    context.controls.absent = absent
    if absent == frozenset(RELEASE_CONTROLS):
        state.add(
            Topic.CONTROLS,
            f"NO CONTROL API: every path of {API} returns {missing[0]}. Is it switched on, and is the token right?",
        )


def list_controls(state: SurveyState, context: Context, requirements: Sequence[Requirement]) -> None:
    """Say which controls the server has, and what each missing one leaves untested."""
    available = context.controls.available
    found = state.findings.controls = [
        ControlFinding(
            each.name,
            _provider(each, context) if each.needs & available else "",
            each.way,
            [] if each.needs & available else _untested(context, requirements, each.needs),
        )
        for each in _KNOWN
    ]
    found += [ControlFinding(name, "a pack", "", []) for name in PACK_CONTROLS]
    present = {
        by: [each.name for each in found if each.by == by] for by in dict.fromkeys(each.by for each in found if each.by)
    }
    for by, names in present.items():
        state.add(Topic.CONTROLS, f"{', '.join(names)} ({by})")
    if not present and not state.profile.token:
        state.add(Topic.CONTROLS, "none: add `process:` or `controls:` to a profile")
        return
    for line in _missing(found):
        state.add(Topic.CONTROLS, line)


def _missing(found: Sequence[ControlFinding]) -> Iterator[str]:
    for each in found:
        if each.untested:
            more = ", …" if each.untested[_SHOWN:] else ""
            count = f"{len(each.untested)} not tested: {', '.join(each.untested[:_SHOWN])}{more}"
            yield f"no {each.name} (needs {each.way}): {count}"


def _provider(known: _Known, context: Context) -> str:
    profile = context.target.profile
    if known.name in profile.controls:
        return "by the profile or the plugin"
    if known.name == "compress" and profile.filling:
        return "by filling the context"
    if known.name == "cache pressure":
        return "by filling the cache"
    return "by the control API" if known.name in RELEASE_CONTROLS else "the kit starts the server"


def _untested(context: Context, requirements: Sequence[Requirement], needs: frozenset[str]) -> list[str]:
    """The requirements that are not tested, or not completely, where a control is missing."""
    return [each.id for each in requirements if each.manual is None and _lacks(context, each, needs)]


def _lacks(context: Context, requirement: Requirement, needs: frozenset[str]) -> bool:
    always = DISTURBING.get(requirement.check or "", frozenset[str]())
    return any(
        needs & (scenario.controls | always)
        and (obstacle_to(context, requirement, scenario) or ("",))[0] is Verdict.NOT_TESTED
        for scenario in scenarios(requirement)
    )

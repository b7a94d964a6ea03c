"""Claims: what a target declares about itself, and what shows whether it is true.

A claim to do something rests on verdicts of the same run: `PROVEN_BY` names the requirements for each option value and
each offer, and `CONTRADICTED_BY` which of their failures contradict it. A claim *not* to do something has no scenario, so `trials.py` tries it, once and cheaply.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from continuity_conformance.checks.support.trials import TRIALS
from continuity_conformance.core.failure import Unmet, Untested
from continuity_conformance.core.verdicts import Evidence, Result, Verdict
from continuity_conformance.scenario.context import Target
from continuity_conformance.scenario.dialogue import Dialogue

PROVEN_BY: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "header": ("ECHO-02",),
        "derivation: content-v1": ("DERIVE-04",),
        "derivation: content-v2": ("DERIVE-12",),
        "compaction: rotate": ("COMPRESS-01", "COMPRESS-10"),
        "compaction: in-place": ("COMPRESS-14",),
        "compaction: truncate": ("COMPRESS-14",),
        "echo: tip": ("COMPRESS-01",),
        "echo: alias": ("COMPRESS-01",),
        "degraded: answer": ("HISTORY-05",),
        "degraded: refuse": ("HISTORY-05",),
        "turns: serialize": ("CONCUR-01",),
        "turns: reject": ("CONCUR-01",),
        "environment: shared": ("ENV-02",),
        "environment: per-session": ("ENV-02",),
        "tells: header": ("ECHO-01",),
        "announces: finish-chunk": ("COMPRESS-07",),
        "announces: event": ("COMPRESS-07",),
        "announces: other": ("COMPRESS-08",),
        "offers responses": ("ECHO-05",),
        "offers stored-responses": ("SLUG-15",),
        "offers conversations": ("SLUG-24",),
        "offers streaming": ("ECHO-03",),
        "offers compression": ("COMPRESS-02", "COMPRESS-14"),
        "offers cors": ("ECHO-07",),
        "offers idempotency": ("ISOLATE-10",),
        "offers sessions": ("DELETE-01",),
        "offers client-tools": ("HISTORY-11",),
        "offers tenants": ("ISOLATE-06",),
    }
)
_ABSENT: Final = frozenset({"status"})
CONTRADICTED_BY: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "derivation": frozenset({"session"}),
        "compaction": frozenset({"session"}),
        "echo": frozenset({"session"}),
        "degraded": frozenset({"status"}),
        "turns": frozenset({"status"}),
        "environment": frozenset({"reads"}),
        "tells": frozenset({"headers", "session"}),
        "offers cors": frozenset({"status", "headers"}),
        "offers idempotency": frozenset({"status", "answer"}),
    }
)
"""The expectations whose failure shows that a claim is not true, by option or offer. An offer that is not listed is refuted by a refusal."""
UNPROVABLE: Final = frozenset({"offers replicas"})
"""Claims that nobody can verify through one address."""
_SETTLED: Final = frozenset({Verdict.PASS, Verdict.NOT_APPLICABLE})


def claims_of(target: Target) -> Iterator[str]:
    """Yield every claim of a target, in the words of `PROVEN_BY` and `TRIALS`."""
    declared = target.declared
    yield from ["header"] if declared.header else []
    yield from (f"{option}: {value}" for option, value in declared.options.items())
    yield from _claims_about_offers(declared.offers, target) if declared.offers is not None else ()
    yield from ["single user"] if declared.single_user else []


def _claims_about_offers(offers: frozenset[str], target: Target) -> Iterator[str]:
    # Every target is taken to offer chat unless it says otherwise, so this is no claim of its own.
    yield from (f"offers {offer}" for offer in sorted(offers & target.offers - {"chat"}))
    yield from (claim for claim in TRIALS if claim.startswith("no ") and claim[3:] not in offers)


async def verify_claim(dialogue: Dialogue, claim: str) -> None:
    """Raise Unmet if the claim is not true. Note the verdicts that are missing as not tested."""
    if claim in TRIALS:
        await _try(dialogue, claim)
    else:
        dialogue.untested.extend(_conclude(claim, dialogue.context.decided))


def is_proven(claim: str, decided: Mapping[str, Result]) -> bool:
    """Whether a requirement that the claim rests on has passed."""
    requirements = PROVEN_BY.get(claim, ())
    return any(ident in decided and decided[ident].verdict is Verdict.PASS for ident in requirements)


def _conclude(claim: str, decided: Mapping[str, Result]) -> list[str]:
    """Raise Unmet if a failure contradicts the claim. Return a note if a requirement that it rests on could not be tested, or fails for another reason.

    A requirement that is not part of the run (`--class`, `--area`) says nothing about the claim.
    """
    requirements = PROVEN_BY.get(claim, ())
    for result in (decided[ident] for ident in requirements if ident in decided):
        contradiction = next((each for each in result.evidence if _contradicts(claim, each)), None)
        if contradiction:
            raise _untrue(claim, f"{result.id} fails: {contradiction.reason or result.reason}")
    missing = [ident for ident in requirements if ident in decided and decided[ident].verdict not in _SETTLED]
    return [f"the claim “{claim}” rests on {', '.join(missing)}, which did not pass"] if missing else []


def _contradicts(claim: str, evidence: Evidence) -> bool:
    """Whether a failure shows that the claim is not true. A feature that is there and has a defect of its own does not."""
    if evidence.outcome is not Verdict.FAIL:
        return False
    if claim == "header":
        return evidence.expectation == "session" and evidence.actual == "absent"
    return evidence.expectation in CONTRADICTED_BY.get(claim.partition(":")[0], _ABSENT)


async def _try(dialogue: Dialogue, claim: str) -> None:
    """Raise Unmet if the trial refutes the claim. A claim that cannot be tried here is believed, and proves nothing."""
    try:
        refuted = await TRIALS[claim](dialogue)
    except Untested:
        return
    if refuted:
        last = dialogue.exchanges[-1]
        raise _untrue(claim, f"{last.request.method} {last.request.path} shows otherwise ({last.answer.status})")


def _untrue(claim: str, actual: str) -> Unmet:
    return Unmet(claim, actual, expectation="claim", step="what the target declares", number="last")

"""The check of DISCOVER: the claims of a target are compared with the results of the run."""

from collections.abc import Sequence

from continuity_conformance.checks.registry import check, concluding, on
from continuity_conformance.checks.support.claims import claims_of, is_proven, verify_claim
from continuity_conformance.core.verdicts import Verdict
from continuity_conformance.scenario.context import Context
from continuity_conformance.scenario.dialogue import Dialogue


def _declarations(context: Context) -> tuple[Verdict, str] | None:
    if any(claims_of(context.target)):
        return None
    return Verdict.NOT_APPLICABLE, "the target declares nothing: it has no capabilities"


@on(_declarations)
@concluding
@check
async def claims_are_true(dialogue: Dialogue) -> None:
    """DISCOVER-02: what the target declares in its capabilities agrees with the results of the other requirements."""
    claims = list(claims_of(dialogue.context.target))
    for claim in claims:
        await verify_claim(dialogue, claim)
    dialogue.untested.extend(_unproven(dialogue, claims))


def _unproven(dialogue: Dialogue, claims: Sequence[str]) -> list[str]:
    """Return a note if no claim is proven: a target that only declares what it lacks has shown nothing."""
    if any(is_proven(claim, dialogue.context.decided) for claim in claims):
        return []
    return ["no claim rests on a requirement that passed, and a feature that is missing proves nothing"]

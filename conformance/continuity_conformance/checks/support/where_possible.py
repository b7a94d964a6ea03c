"""Interventions that a check makes where the target has the control. Without it, the rest of the check still shows something."""

from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.interventions import made_step


async def where_possible(dialogue: Dialogue, control: str, **params: object) -> None:
    if control in dialogue.context.controls.available:
        await dialogue.interventions.do(made_step(control, params))

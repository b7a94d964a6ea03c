"""Checks of COMPRESS: the real `openai` client in the turn that rotates its session."""

from continuity_conformance.checks.registry import check
from continuity_conformance.checks.support.openai_client import more_fields, must_equal, real_client, user_message
from continuity_conformance.scenario.dialogue import Dialogue


@check
async def openai_client_rotation(dialogue: Dialogue) -> None:
    """COMPRESS-08: an unmodified OpenAI client reads the stream in which the session moves to a new id, as it reads any other."""
    header = dialogue.context.target.header
    session = dialogue.variables.text("$old", "session")
    await dialogue.do("chat", {"session": "$old"}, session="$old", say="red")
    await dialogue.do("chat", {"session": "$old"}, session="$old", say="blue")
    async with dialogue.compressing("$old", "green"), real_client(dialogue) as client:
        stream = await client.chat.completions.create(
            model=dialogue.context.target.profile.model,
            messages=[user_message(dialogue, "green")],
            extra_headers={header: session},
            extra_body=more_fields(dialogue),
            stream=True,
        )
        choices = [chunk.choices[0] async for chunk in stream]
        must_equal("the finish_reasons", [each.finish_reason for each in choices if each.finish_reason], ["stop"])
        must_equal("whether there is a text", any(each.delta.content for each in choices), expected=True)
    await dialogue.do("chat", {"recalls": ["red", "blue", "green", "white"]}, session="$old", say="white")

"""Checks of COMPRESS: the real `openai` client in the turn that rotates its session."""

from continuity_conformance.checks.openai_client import must_equal, real_client, user_message
from continuity_conformance.checks.registry import check
from continuity_conformance.scenario.dialogue import Dialogue


@check
async def openai_client_rotation(dialogue: Dialogue) -> None:
    """COMPRESS-08: an unmodified OpenAI client reads the stream that rotates the session, and finds the new id in it."""
    header = dialogue.context.target.header
    session = dialogue.variables.text("$old", "session")
    await dialogue.do("chat", {"session": "$old"}, session="$old", say="red")
    await dialogue.do("chat", {"session": "$old"}, session="$old", say="blue")
    async with dialogue.compressing("$old", "green"), real_client(dialogue) as client:
        stream = await client.chat.completions.create(
            model=dialogue.context.target.profile.model,
            messages=[user_message(dialogue, "green")],
            extra_headers={header: session},
            stream=True,
        )
        last_chunks = [chunk async for chunk in stream if chunk.choices[0].finish_reason]
        must_equal("the finish_reasons", [chunk.choices[0].finish_reason for chunk in last_chunks], ["stop"])
        session_info = (last_chunks[0].model_extra or {}).get("session") or {}
        new_id = session_info.get("id")
        dialogue.variables.capture("$tip", "session", "alice", new_id)
        must_equal("whether the stream told a new id", new_id not in {None, session}, expected=True)
    expected = {"session": "$tip", "recalls": ["red", "blue", "green", "white"], "summary": True}
    await dialogue.do("chat", expected, session="$tip", say="white")

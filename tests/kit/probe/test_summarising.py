"""Which calls of the model ask for a summary."""

import asyncio

import pytest

from continuity_conformance.probe.script import Script
from continuity_conformance.probe.server import Probe

RED, BLUE = "aaaa0000", "bbbb0000"
KEPT = "[Summary of the conversation so far] What was said so far. [sum#1]"


def user(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, object]:
    return {"role": "assistant", "content": text}


def system(text: str) -> dict[str, object]:
    return {"role": "system", "content": text}


ASKED, ANSWERED, NEW = user(f"[u:{RED}] red"), assistant(f"Noted. [a:{RED}#1]"), user(f"[u:{BLUE}] blue")
CALLED = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "a summary of the file"}
TRANSCRIPT = f"User: [u:{RED}] red\nAssistant: Noted. [a:{RED}#1]"

ORDINARY = {
    "a first turn": [ASKED],
    "an instruction that mentions summaries": [system("You can summarise files."), ASKED, ANSWERED, NEW],
    "the summary in a system message": [system(KEPT), NEW],
    "the summary in a system message, later": [system("You help."), system(KEPT), ASKED, ANSWERED, NEW],
    "the summary in a user message": [user(KEPT), assistant("Understood."), NEW],
    "the summary in an assistant message": [assistant(KEPT), NEW],
    "the summary in the user's own message": [user(f"{KEPT}\n\n[u:{BLUE}] blue")],
    "a summary that the model did not write": [system("[Summary of the conversation so far] red"), NEW],
    "a tool call after the turn": [system(KEPT), NEW, CALLED, RESULT],
    "a title for a compressed conversation": [system(KEPT), NEW, assistant(f"[a:{BLUE}#2]"), user("Give it a title.")],
    "a title for a conversation": [ASKED, ANSWERED, user("Give it a title.")],
    "a turn that asks for a summary": [ASKED, ANSWERED, user(f"[u:{BLUE}] Please summarise what I said.")],
    "a reminder after the turn": [
        system("You can summarise files."),
        ASKED,
        ANSWERED,
        NEW,
        user("<reminder>Be brief."),
    ],
    "a title, asked as a summary": [ASKED, ANSWERED, user("Summarise the conversation in a title of five words.")],
    "a title for a conversation with the server's own summary": [
        system("[Summary of the conversation so far] red"),
        ASKED,
        ANSWERED,
        user("Give it a name."),
    ],
    "the server's own summary in the user's message": [user(f"Summary of the conversation: red.\n\n[u:{BLUE}] blue")],
    "two turns in one message, the first of which failed": [
        ASKED,
        ANSWERED,
        user(f"[u:{BLUE}] blue\n\n[u:{BLUE}] blue"),
    ],
    "an instruction to be compact": [system("Keep your answers compact."), ASKED, ANSWERED, NEW],
    "a note that turns were compacted": [system("The earlier turns were condensed: red."), ASKED, ANSWERED, NEW],
    "a title after a compaction": [system("After the compaction: red."), ASKED, ANSWERED, user("Give it a name.")],
    "nothing that was said": [system("You summarise conversations."), user("Are you there?")],
    "no message": [],
}
SUMMARISING = {
    "asked at the end": [ASKED, ANSWERED, user("Create a summary of the conversation above.")],
    "asked at the beginning and at the end": [system("Summarise."), ASKED, ANSWERED, user("Write it now: a summary.")],
    "asked at the beginning": [system("Summarise the conversation."), ASKED, ANSWERED],
    "a transcript in a user message": [user(f"Summarise this conversation:\n{TRANSCRIPT}")],
    "a transcript, asked by the system": [system("You summarise conversations."), user(TRANSCRIPT)],
    "a transcript in a system message": [system(f"Summarise this:\n{TRANSCRIPT}")],
    "a transcript with the newest turn": [user(f"Summarise:\n{TRANSCRIPT}\nUser: [u:{BLUE}] blue")],
    "asked after the newest turn": [ASKED, ANSWERED, NEW, user("Summarise the conversation above.")],
    "asked in the middle of a tool loop": [ASKED, ANSWERED, NEW, CALLED, RESULT, user("Write a summary.")],
    "one question alone": [user(f"Summarise this conversation:\nUser: [u:{RED}] red\nUser: [u:{BLUE}] blue")],
    "an earlier summary and more turns": [user(f"Update the summary.\n{KEPT}\n{TRANSCRIPT}")],
    "an earlier summary alone": [system("Summarise the conversation."), system(KEPT), user("Write the summary now.")],
    "other words for it": [system("You condense conversations. Rewrite the transcript as notes."), user(TRANSCRIPT)],
    "a compaction": [ASKED, ANSWERED, user("Compact the conversation above into the facts that matter.")],
    "an engine": [system("You are a context compaction engine."), user(TRANSCRIPT)],
    "a recap": [ASKED, ANSWERED, user("Write a short recap of all that was said.")],
    "an earlier summary in a transcript": [system("You summarise."), user("Summary so far: [sum#1]")],
}


@pytest.mark.parametrize("messages", ORDINARY.values(), ids=ORDINARY.keys())
def test_a_call_that_ends_in_the_turn_of_the_client_is_ordinary(messages):
    assert not Probe().record(messages).summary


@pytest.mark.parametrize("messages", SUMMARISING.values(), ids=SUMMARISING.keys())
def test_a_call_that_asks_about_turns_is_summarising(messages):
    assert Probe().record(messages).summary


PROMPT = "You are an agent. When the user asks for a file, summarise it. Today is 2026-11-18."
LATER = "You are an agent. When the user asks for a file, summarise it. Today is 2026-11-19."


def taught(*first_turns: dict[str, object]) -> Probe:
    """A probe that has seen these messages before the first turn of a conversation."""
    probe = Probe()
    probe.record([*first_turns, user("[u:cccc0000] green")])
    return probe


@pytest.mark.parametrize(
    "messages",
    [
        [system(LATER), ASKED, ANSWERED, NEW],
        [system(LATER), ASKED, ANSWERED, user("Give it a name.")],
        [system(LATER), ASKED, ANSWERED],
        [system(LATER), ASKED, user(f"[u:{RED}] red\n[u:{BLUE}] blue")],
        [ASKED, ANSWERED, NEW, system(LATER)],
    ],
)
def test_what_is_said_in_first_turns_asks_for_no_summary(messages):
    assert not taught(system(PROMPT)).record(messages).summary


@pytest.mark.parametrize("known", [system("You help."), system(PROMPT)])
@pytest.mark.parametrize(
    "messages",
    [
        [system("Summarise the conversation below."), ASKED, ANSWERED, NEW],
        [system("You write summaries. Create a short summary of the chat."), ASKED, ANSWERED, NEW],
        [system(PROMPT), ASKED, ANSWERED, user("Summarise the conversation above.")],
        [system("You summarise conversations."), user(TRANSCRIPT)],
    ],
)
def test_other_words_about_summaries_ask_for_one(known, messages):
    assert taught(known).record(messages).summary


def test_a_first_turn_is_never_summarised():
    messages = [system("Summarise files."), ASKED, user("<reminder>You can write a summary.</reminder>")]

    assert not Probe().record(messages).summary


def test_a_summary_is_in_the_tags_that_the_target_asks_for():
    async def written() -> str:
        probe = Probe()
        call = probe.record([ASKED, ANSWERED, user("Write a summary in <summary></summary> tags.")])
        return (await probe.reply(call)).text

    assert asyncio.run(written()) == "<summary>What was said so far. [sum#1]</summary>"


def test_a_pattern_of_the_profile_decides_alone():
    probe = Probe("condense")

    assert probe.record([system("Condense this."), ASKED]).summary
    assert not probe.record([ASKED, ANSWERED, user("Write a summary.")]).summary


def test_a_summary_of_a_summary_is_a_call_about_the_same_turns():
    async def found() -> list[int]:
        probe = Probe()
        probe.record([ASKED, ANSWERED, user("Write a summary.")])
        probe.record([system("You summarise."), user("Summary so far: [sum#1]")])
        return [call.number for call in await probe.calls(frozenset({RED}))]

    assert asyncio.run(found()) == [1, 2]


def test_a_summary_of_a_summary_fails_with_the_turns_that_it_covers():
    async def failed() -> bool:
        probe = Probe()
        probe.record([ASKED, ANSWERED, user("Write a summary.")])
        await probe.script(RED, Script(summary_fails=True))
        return (await probe.reply(probe.record([system("You summarise."), user("Summary so far: [sum#1]")]))).failed

    assert asyncio.run(failed())

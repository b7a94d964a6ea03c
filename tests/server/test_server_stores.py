"""What both stores must do, on SQLite and on PostgreSQL: the same tests for both."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from databases import KINDS, new_database

from continuity_server.rules import Rules
from continuity_server.rules.compress import Covered
from continuity_server.server import Parts, opened
from continuity_server.settings import Options, Settings
from continuity_server.store.disk import StoreUnwritableError
from continuity_server.store.faults import Fault
from continuity_server.store.postgres.waiting import run_waiting
from continuity_server.store.records import Ended, HistoryWrite, Replay, SlugWrite, StoredConversation, Write
from continuity_server.store.store import StoreUnreadableError

ALICE, BOB = "alice", "bob"
ODD = ["a'b; --", "nul\0and\x1aescape", "emoji 🙂 \u2028", "\\x00 %s $1", " blanks ", "É"]


@pytest.fixture(params=KINDS)
def play(request, tmp_path):
    """Plays a test on a store that is opened anew each time, on one database."""
    settings = Settings(db=new_database(request.param, tmp_path), controls="token")

    async def on_store(test):
        async with AsyncExitStack() as stack:
            store = await opened(settings, Rules(Options()), Parts(), stack)
            return await run_waiting(test, store)

    return lambda test: asyncio.run(on_store(test))


def said(text, role="user"):
    return {"role": role, "content": text}


def turn(session, *texts, owner=ALICE, **more):
    history = HistoryWrite(session, session, tuple(map(said, texts)))
    return Write(owner, replace(history, **more.pop("history", {})), **more)


def answered(session, response, *texts, **more):
    return turn(session, *texts, response=(response, {"id": response, "output": []}), **more)


def texts(messages):
    return [message["content"] for message in messages]


def test_turns_are_read_back_in_order_after_a_restart(play):
    async def write(store):
        for number in range(3):
            await store.commit(turn("s", f"question {number}", f"answer {number}"))

    async def read(store):
        session = store.session(ALICE, "s")
        return texts(store.messages(ALICE, "s", session.epoch)), store.last_message(ALICE, "s", 1) > 0

    play(write)

    assert play(read) == (["question 0", "answer 0", "question 1", "answer 1", "question 2", "answer 2"], True)


def test_a_message_is_read_back_as_it_was(play):
    message = {
        "role": "tool",
        "tool_call_id": "c",
        "content": [{"type": "text", "text": '\0 \ud800 \x1a é 🙂 " \\'}],
        "x": [1.5, None],
    }

    async def write_and_read(store):
        await store.commit(Write(ALICE, HistoryWrite("s", "s", (message,))))
        return store.messages(ALICE, "s", 1)

    assert play(write_and_read) == [message]


def test_what_one_principal_has_another_does_not(play):
    async def write_and_read(store):
        await store.commit(answered("s", "r", "hers", slug=SlugWrite("work", "s")))
        await store.commit(turn("s", "his", owner=BOB))
        return (
            texts(store.messages(BOB, "s", 1)),
            store.response(BOB, "r"),
            store.slug(BOB, "work"),
            store.slug_of(BOB, "s"),
            [each.owner for each in store.page_of_sessions(BOB, None, 9)],
        )

    assert play(write_and_read) == (["his"], None, None, None, [BOB])


@pytest.mark.parametrize("name", ODD)
def test_every_character_of_a_slug_is_data(play, name):
    async def write_and_read(store):
        await store.commit(answered("s", "r", "text", slug=SlugWrite(name, "s")))
        return store.slug(ALICE, name).session, store.slug_of(ALICE, "s"), store.slug(ALICE, name + "x")

    assert play(write_and_read) == ("s", name, None)


@pytest.mark.parametrize("name", ODD)
def test_what_nobody_stored_is_not_found_whatever_its_name(play, name):
    async def look(store):
        found = [store.session(ALICE, name), store.response(ALICE, name), store.conversation(ALICE, name)]
        return [*found, store.replay(ALICE, name, name), store.slug(ALICE, name)]

    assert play(look) == [None] * 5


def test_a_replaced_history_begins_anew_and_its_responses_keep_theirs(play):
    async def write_and_read(store):
        await store.commit(answered("s", "r", "red", "blue"))
        first = store.response(ALICE, "r")
        covered = Covered(1, "digest")
        await store.commit(turn("s", "summary", history={"replace": True, "covered": covered}))
        session = store.session(ALICE, "s")
        now = store.messages(ALICE, "s", session.epoch)
        then = store.messages(ALICE, "s", first.epoch, first.upto)
        return texts(now), texts(then), session.covered == covered, session.epoch > first.epoch

    assert play(write_and_read) == (["summary"], ["red", "blue"], True, True)


def test_a_response_knows_where_its_history_ends(play):
    async def write_and_read(store):
        for number in range(3):
            await store.commit(answered("s", f"r{number}", f"turn {number}"))
        found = [store.response(ALICE, f"r{number}") for number in range(3)]
        read = [texts(store.messages(ALICE, each.session, each.epoch, each.upto)) for each in found]
        return read, found[2].upto == store.last_message(ALICE, "s", 1)

    assert play(write_and_read) == ([["turn 0"], ["turn 0", "turn 1"], ["turn 0", "turn 1", "turn 2"]], True)


def test_a_rotation_ends_the_parent_and_the_family_is_in_order(play):
    async def write_and_read(store):
        await store.commit(turn("s", "red"))
        child = HistoryWrite("child", "s", (said("summary"),), replace=True, parent="s", kind="compression")
        await store.commit(Write(ALICE, child, ended=Ended("s", "compression")))
        branch = HistoryWrite("branch", "branch", (said("red"),), replace=True, parent="s", kind="branch")
        await store.commit(Write(ALICE, branch))
        parent = store.session(ALICE, "s")
        return parent.next, parent.end_reason, [each.id for each in store.family(ALICE, "s")]

    assert play(write_and_read) == ("child", "compression", ["s", "child", "branch"])


def test_a_rotation_of_a_session_that_is_not_stored_yet_stores_it(play):
    async def write_and_read(store):
        child = HistoryWrite("child", "s", (said("summary"),), replace=True, parent="s", kind="compression")
        await store.commit(Write(ALICE, child, ended=Ended("s", "compression")))
        return store.session(ALICE, "s").next

    assert play(write_and_read) == "child"


def test_the_list_of_sessions_has_the_newest_first_page_by_page(play):
    names = [f"s{number}" for number in range(7)]

    async def write_and_read(store):
        for name in names:
            await store.commit(turn(name, "text"))
        await store.commit(turn("s0", "more"))
        pages, after = [], None
        while page := [each.id for each in store.page_of_sessions(ALICE, after, 3)]:
            pages.append(page)
            after = page[-1]
        return pages, [each.id for each in store.page_of_sessions(ALICE, "unknown", 2)]

    assert play(write_and_read) == ([["s6", "s5", "s4"], ["s3", "s2", "s1"], ["s0"]], ["s6", "s5"])


def test_the_least_recently_used_responses_are_evicted_and_their_slugs_stay(play):
    async def write_and_read(store):
        for number in range(4):
            await store.commit(
                answered(f"s{number}", f"r{number}", "text", slug=SlugWrite(f"slug {number}", f"s{number}"))
            )
        await store.touch(ALICE, "r0")
        await store.commit(answered("s4", "r4", "text", max_responses=3))
        there = [number for number in range(5) if store.response(ALICE, f"r{number}") is not None]
        slug = store.slug(ALICE, "slug 1")
        return there, slug.session, slug.response_gone

    assert play(write_and_read) == ([0, 3, 4], "s1", True)


def test_a_response_that_a_turn_continued_counts_as_used(play):
    async def write_and_read(store):
        for number in range(2):
            await store.commit(answered("s", f"r{number}", "text"))
        await store.commit(answered("s", "r2", "text", previous="r0", max_responses=2))
        return [number for number in range(3) if store.response(ALICE, f"r{number}") is not None]

    assert play(write_and_read) == [0, 2]


def test_a_deleted_response_leaves_its_slug_and_an_evicted_one_too(play):
    async def write_and_read(store):
        await store.commit(answered("s", "r1", "text", slug=SlugWrite("one", "s")))
        await store.commit(answered("t", "r2", "text", slug=SlugWrite("two", "t")))
        await store.delete_response(ALICE, "r1")
        await store.evict(ALICE, "r2")
        return (
            store.slug(ALICE, "one"),
            store.slug(ALICE, "two"),
            store.response(ALICE, "r1"),
            store.response(ALICE, "r2"),
        )

    one, two, *responses = play(write_and_read)

    assert (one.session, one.response_gone, two.session, two.response_gone) == ("s", False, "t", True)
    assert responses == [None, None]


def test_a_deleted_session_leaves_nothing(play):
    replay = Replay(ALICE, "s", "key", "print", "s", "s", {"id": "x"})

    async def write_and_read(store):
        await store.add_conversation(ALICE, StoredConversation("conv", 1, {}))
        await store.commit(answered("s", "r", "text", slug=SlugWrite("conv", "s"), replay=replay))
        await store.commit(turn("other", "stays"))
        await store.delete_sessions(ALICE, ["s"])
        gone = [store.session(ALICE, "s"), store.response(ALICE, "r"), store.slug(ALICE, "conv")]
        gone += [store.conversation(ALICE, "conv"), store.replay(ALICE, "s", "key")]
        return gone, store.messages(ALICE, "s", 1), texts(store.messages(ALICE, "other", 1))

    assert play(write_and_read) == ([None] * 5, [], ["stays"])


def test_a_conversation_object_is_kept_and_deleted_with_its_sessions(play):
    made = StoredConversation("conv", 12, {"topic": "é"})

    async def write_and_read(store):
        await store.add_conversation(ALICE, made)
        kept = store.conversation(ALICE, "conv")
        await store.commit(answered("s", "r", "text", slug=SlugWrite("conv", "s")))
        await store.delete_conversation(ALICE, "conv", ["s"])
        return kept, store.conversation(ALICE, "conv"), store.session(ALICE, "s")

    assert play(write_and_read) == (made, None, None)


def test_a_replay_is_found_by_its_chain_and_key_and_the_newest_counts(play):
    replay = Replay(ALICE, "s", "key", "print", "s", "s", {"text": "\0 é"})

    async def write_and_read(store):
        await store.commit(turn("s", "text", replay=replace(replay, body={})))
        await store.commit(turn("s", "text", replay=replay))
        return store.replay(ALICE, "s", "key"), store.replay(ALICE, "t", "key"), store.replay(BOB, "s", "key")

    assert play(write_and_read) == (replay, None, None)


def test_a_mark_for_compression_is_removed_by_the_turn_that_compresses(play):
    async def write_and_read(store):
        await store.commit(turn("s", "text"))
        await store.mark_for_compression(ALICE, "s")
        marked = store.session(ALICE, "s").compress_next
        await store.commit(turn("s", "text", compressed_on_request="s"))
        return marked, store.session(ALICE, "s").compress_next

    assert play(write_and_read) == (True, False)


def test_a_link_changes_the_version_of_the_links(play):
    async def write_and_read(store):
        await store.commit(turn("s", "text"))
        before = store.links_version()
        await store.link(ALICE, "s", "other")
        linked, after = store.session(ALICE, "s").next, store.links_version()
        await store.link(ALICE, "s", None)
        return linked, before != after, store.session(ALICE, "s").next

    assert play(write_and_read) == ("other", True, None)


def test_a_store_whose_content_cannot_be_read_says_so_and_keeps_it(play):
    async def break_and_mend(store):
        await store.commit(answered("s", "r", "text", slug=SlugWrite("work", "s")))
        store.faults.set(Fault.READ, on=True)
        with pytest.raises(StoreUnreadableError):
            store.messages(ALICE, "s", 1)
        with pytest.raises(StoreUnreadableError):
            store.response(ALICE, "r")
        session, failures = store.session(ALICE, "s").id, store.failures()
        store.faults.set(Fault.READ, on=False)
        return session, failures, texts(store.messages(ALICE, "s", 1))

    assert play(break_and_mend) == ("s", ["read"], ["text"])


def test_a_store_whose_lineage_cannot_be_read_says_so(play):
    async def break_and_mend(store):
        await store.commit(answered("s", "r", "text", slug=SlugWrite("work", "s")))
        store.faults.set(Fault.LINEAGE, on=True)
        for look in (lambda: store.session(ALICE, "s"), lambda: store.slug(ALICE, "work")):
            with pytest.raises(StoreUnreadableError):
                look()
        store.faults.set(Fault.LINEAGE, on=False)
        return store.slug(ALICE, "work").session

    assert play(break_and_mend) == "s"


def test_a_store_that_cannot_be_written_refuses_before_the_model_is_asked_and_loses_nothing(play):
    async def break_and_mend(store):
        await store.commit(turn("s", "red"))
        store.faults.set(Fault.WRITE, on=True)
        for change in (store.check_writable(), store.commit(turn("s", "lost")), store.delete_sessions(ALICE, ["s"])):
            with pytest.raises(StoreUnwritableError):
                await change
        failures = store.failures()
        store.faults.set(Fault.WRITE, on=False)
        await store.check_writable()
        await store.commit(turn("s", "blue"))
        return failures, store.failures(), texts(store.messages(ALICE, "s", 1))

    assert play(break_and_mend) == (["written"], [], ["red", "blue"])


def test_a_fault_ends_with_a_start(play):
    async def break_it(store):
        await store.commit(turn("s", "red"))
        store.faults.set(Fault.READ, on=True)
        store.faults.set(Fault.WRITE, on=True)

    async def use_it(store):
        await store.commit(turn("s", "blue"))
        return texts(store.messages(ALICE, "s", 1))

    play(break_it)

    assert play(use_it) == ["red", "blue"]


def test_a_turn_that_fails_in_its_middle_leaves_nothing(play):
    """Two responses cannot have one id."""

    async def write_and_read(store):
        await store.commit(answered("s", "r", "red"))
        with pytest.raises(StoreUnwritableError):
            await store.commit(answered("t", "r", "blue", slug=SlugWrite("work", "t")))
        return store.session(ALICE, "t"), store.messages(ALICE, "t", 1), store.slug(ALICE, "work")

    assert play(write_and_read) == (None, [], None)


def test_turns_that_are_stored_at_once_are_all_stored(play):
    async def write_and_read(store):
        await asyncio.gather(
            *(store.commit(answered(f"s{k % 5}", f"r{k}", f"{k}", max_responses=9)) for k in range(40))
        )
        kept = [text for k in range(5) for text in texts(store.messages(ALICE, f"s{k}", 1))]
        return sorted(kept, key=int), sum(store.response(ALICE, f"r{k}") is not None for k in range(40))

    kept, responses = play(write_and_read)

    assert kept == [str(number) for number in range(40)]
    assert responses >= 9

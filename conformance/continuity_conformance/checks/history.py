"""Checks of HISTORY: the open files of the target, and the list of its sessions."""

import asyncio
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import quote

from continuity_conformance.checks.registry import a_started_process, check, disturbing, on
from continuity_conformance.core.failure import Inapplicable, Unmet, Untested
from continuity_conformance.http.messages import dig
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.target.open_files import open_files
from continuity_conformance.target.process import StartedProcess

_SESSIONS: Final = 4
_ROUNDS: Final = 12
_TOLERANCE: Final = _SESSIONS * _ROUNDS // 2
"""How many more files may be open after all rounds. A pool may still fill; one file for each turn is twice as many."""
_LONGEST_PAGE: Final = 100
_PAGE: Final = f"/v1/sessions?limit={_LONGEST_PAGE}"
_TURNS: Final = 3
_AT_ONCE: Final = ("$quick-1", "$quick-2", "$quick-3", "$quick-4")


@on(a_started_process)
@disturbing()
@check
async def open_files_do_not_grow(dialogue: Dialogue) -> None:
    """HISTORY-12: after many turns in the same sessions, the target has no more files and connections open than before."""
    process = _process(dialogue)
    await _round(dialogue, 0)
    await _round(dialogue, 1)
    before = open_files(process.pid)
    for number in range(2, 2 + _ROUNDS):
        await _round(dialogue, number)
    _must_not_grow(before, open_files(process.pid))


def _process(dialogue: Dialogue) -> StartedProcess:
    started = dialogue.context.server.started
    assert started is not None, "a condition of the check"
    return started


def _must_not_grow(before: int, after: int) -> None:
    if after - before > _TOLERANCE:
        raise Unmet(
            f"about {before} open files and connections, as before",
            f"{after} after {_SESSIONS * _ROUNDS} more turns",
            expectation="open files",
        )


async def _round(dialogue: Dialogue, number: int) -> None:
    """One turn in each session."""
    verb, names = _sessions(dialogue)
    for name in names:
        key = name.removeprefix("$")
        said = [f"{key} turn {turn}" for turn in range(number + 1)]
        selector: dict[str, object] = {"session" if verb == "chat" else "conversation": name}
        exchange = await dialogue.do(verb, None, say=said[-1], **selector)
        dialogue.untested.extend(await _forgotten(dialogue, exchange, said))


async def _forgotten(dialogue: Dialogue, exchange: Exchange, said: Sequence[str]) -> list[str]:
    """Return a note if the turn before this one is not seen, or those of other sessions are: such a target has no store of sessions. Older turns may be gone (`compaction: truncate`)."""
    await dialogue.record.view(exchange)
    seen = exchange.seen or ()
    if said[-2:][0] not in seen:
        return ["the target keeps no history, so it has no store to be watched"]
    return [] if set(seen) <= set(said) else ["the target mixes its sessions, so its store tells nothing"]


def _sessions(dialogue: Dialogue) -> tuple[str, list[str]]:
    target = dialogue.context.target
    if "chat" not in target.offers and not target.takes_slugs:
        raise Untested("the target has neither chat sessions nor slugs, so no session can be named")
    kind = ("chat", "id") if "chat" in target.offers else ("respond", "slug")
    return kind[0], [f"${kind[1]}-{number}" for number in range(_SESSIONS)]


@disturbing()
@check
async def one_entry_per_session(dialogue: Dialogue) -> None:
    """HISTORY-17: several turns in two named sessions, and in one under a derived id, add one entry for each to the list of sessions.

    Four more begin at once, and the list shows them in pages of one too.
    """
    before = await _listed(dialogue)
    names = ("$one", "$other")
    for turn, name in itertools.product(range(_TURNS), names):
        await dialogue.do("chat", session=name, say=f"{name[1:]} turn {turn}")
    derived = await _derived(dialogue)
    # Sessions of one moment: a page that ends between them must not leave any out.
    await asyncio.gather(*(dialogue.do("chat", session=name, say=f"{name[1:]} turn") for name in _AT_ONCE))
    ours = sorted(dialogue.variables.text(name, "session") for name in (*names, *_AT_ONCE))
    new = [session for session in await _listed(dialogue) if session not in before]
    _must_equal(ours, derived, sorted(new))
    await _must_page(dialogue, new, names)
    await _must_fill_pages(dialogue)


async def _derived(dialogue: Dialogue) -> int:
    """Play a conversation that names no session and is sent whole in each turn, where ids are derived. Return how many there were."""
    conversations = int(dialogue.context.target.options["derivation"] != "none")
    said = [f"unnamed turn {turn}" for turn in range(_TURNS * conversations)]
    for turn, say in enumerate(said):
        await dialogue.do("chat", history=said[:turn], say=say)
    return conversations


def _must_equal(ours: list[str], derived: int, new: list[str]) -> None:
    others = [session for session in new if session not in ours]
    if len(new) != len(ours) + len(others) or len(others) > derived:
        expected = f"one new entry for each session: {', '.join(ours)}{', and one under a derived id' * derived}"
        raise Unmet(expected, ", ".join(new) or "none", expectation="list")


async def _must_page(dialogue: Dialogue, newest: Sequence[str], named: Sequence[str]) -> None:
    """Read the newest sessions in pages of one, if the target has such pages.

    Where the list has the documented order, the first of the `named` sessions gets a turn just before the page that must show it, as may happen while
    somebody reads.
    """
    if not await _has_pages_of_one(dialogue, newest):
        return
    moving = dialogue.variables.text(named[0], "session") if dialogue.context.target.profile.documented_sessions else ""
    for session, following in itertools.pairwise(newest):
        if following == moving:
            await dialogue.do("chat", session=named[0], say="a turn between two pages")
        page = await _page_of_one(dialogue, session)
        if page != [following]:
            raise Unmet(
                f"{following} on the page after {session}",
                ", ".join(page) or "none",
                expectation="pages",
                step="pages of one",
            )


async def _has_pages_of_one(dialogue: Dialogue, newest: Sequence[str]) -> bool:
    """Whether `limit` and `after` choose a page. A target that does not know them shows all sessions, or the newest one again."""
    return (await _page_of_one(dialogue, newest[1]))[:2] not in (newest[:1], newest[:2])


async def _page_of_one(dialogue: Dialogue, session: str) -> list[str]:
    return await _listed(dialogue, f"/v1/sessions?limit=1&after={quote(session, safe='')}")


async def _must_fill_pages(dialogue: Dialogue) -> None:
    """Make more sessions than the longest page has: whoever reads page after page must find them all."""
    if not dialogue.context.target.profile.documented_sessions:
        return  # how long its pages may be is not known
    names = [f"$many-{number}" for number in range(_LONGEST_PAGE + 1 - len(await _listed(dialogue)))]
    places = asyncio.Semaphore(dialogue.context.target.profile.limits.at_once)
    await asyncio.gather(*(_begin(dialogue, name, places) for name in names))
    ours = {dialogue.variables.text(name, "session") for name in (*names, "$one", "$other", *_AT_ONCE)}
    page = more = await _listed(dialogue)
    while more and not ours <= set(page):
        more = await _listed(dialogue, f"{_PAGE}&after={quote(page[-1], safe='')}") if _has_more(dialogue) else []
        page = [*page, *more]
    if missing := ours - set(page):
        raise Unmet(
            f"all of {len(ours)} sessions on pages of {_LONGEST_PAGE}",
            f"{len(missing)} of them on no page",
            expectation="pages",
            step=f"pages of {_LONGEST_PAGE}",
        )


async def _begin(dialogue: Dialogue, name: str, places: asyncio.Semaphore) -> None:
    async with places:
        await dialogue.do("chat", session=name, say=f"{name[1:]} turn")


def _has_more(dialogue: Dialogue) -> bool:
    """Whether the page that was read last says that there are more."""
    return dig(dialogue.exchanges[-1].answer.body, "has_more") is not False


async def _listed(dialogue: Dialogue, path: str = _PAGE) -> list[str]:
    """The sessions on a page of the list; the first one has the newest."""
    profile = dialogue.context.target.profile
    expected = {} if profile.documented_sessions else {"status": "any"}
    answer = (await dialogue.do("get", expected, path=path)).answer
    if not answer.accepted:
        raise Inapplicable(f"the target has no list of sessions at {profile.sessions}")
    data = dig(answer.body, "data")
    if not isinstance(data, list):
        raise Untested("the list of sessions has another form than that of the contract")
    return list(_ids(dialogue, data))


def _ids(dialogue: Dialogue, data: list[object]) -> Iterator[str]:
    name = dialogue.context.target.profile.session_fields.get("id", "id")
    yield from (str(session.get(name)) for session in data if isinstance(session, Mapping))

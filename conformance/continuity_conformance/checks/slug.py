"""The check of SLUG: the list of sessions has one session for all turns of a slug."""

from typing import Final
from urllib.parse import quote

from continuity_conformance.checks.registry import check, disturbing
from continuity_conformance.checks.support.where_possible import where_possible
from continuity_conformance.core.failure import Inapplicable, Unmet, Untested
from continuity_conformance.http.messages import Answer, dig
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.target.profile import DEFAULT_SESSIONS

_PAGE_SIZE: Final = 100
_MAX_PAGES: Final = 50
_NO_LIST: Final = frozenset({404, 405, 501})


@disturbing()
@check
async def one_session_of_a_slug(dialogue: Dialogue) -> None:
    """SLUG-28: however many turns a slug has, one session is added to the list. It plays alone, so nobody else adds any."""
    before = await _listed(dialogue)
    await dialogue.do("respond", {"status": "2xx"}, conversation="$slug", say="red")
    await dialogue.do("respond", {"response": "$gone"}, conversation="$slug", say="blue")
    await where_possible(dialogue, "evict", response="$gone")
    await dialogue.do("respond", {"status": "2xx"}, conversation="$slug", say="green")
    await where_possible(dialogue, "restart")
    await dialogue.do("respond", {"status": "2xx"}, conversation="$slug", say="white")
    _must_be_one(await _listed(dialogue) - before)


async def _listed(dialogue: Dialogue) -> frozenset[str]:
    """Return the ids of all sessions in the list, page by page."""
    ids: dict[str, None] = {}
    after = ""
    for _ in range(_MAX_PAGES):
        page = [ident for ident in await _page(dialogue, after) if ident not in ids]
        if not page:
            break
        ids.update(dict.fromkeys(page))
        after = f"&after={quote(page[-1], safe='')}"
    return frozenset(ids)


async def _page(dialogue: Dialogue, after: str) -> list[str]:
    path = f"{DEFAULT_SESSIONS}?limit={_PAGE_SIZE}{after}"
    answer = (await dialogue.do("get", {"status": "any"}, path=path)).answer
    return _ids(answer)


def _ids(answer: Answer) -> list[str]:
    data = dig(answer.body, "data")
    if answer.status in _NO_LIST:
        raise Inapplicable("the target does not list its sessions")
    if not answer.accepted or not isinstance(data, list):
        raise Untested(f"the list of sessions cannot be read: {answer.error or answer.status}")
    return [str(dig(session, "id")) for session in data]


def _must_be_one(new: frozenset[str]) -> None:
    if not new:
        raise Untested("the session of the slug is not in the list, or not on a page that could be read")
    if len(new) > 1:
        shown = ", ".join(sorted(new))
        raise Unmet("one new session", f"{len(new)}: {shown}", expectation="sessions", step="the list of sessions")

"""Check the list of sessions against the document: its order and its pages, which single random requests cannot show."""

from typing import Final
from urllib.parse import quote

from continuity_conformance.core.failure import Unmet
from continuity_conformance.http.messages import dig
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange

_PAGE_SIZE: Final = 100
_MAX_PAGES: Final = 20
"""How many pages are read at most. Other scenarios start sessions at the same time, which are listed between ours."""


async def check_session_list(dialogue: Dialogue, older: str, newer: str) -> None:
    """The list has the newest session first, obeys `limit`, and gives only older sessions after the one in `after`."""
    await dialogue.do("chat", {"session": "$newest"}, session="$newest", say="white")
    newest, expected = _id(dialogue, "$newest"), [_id(dialogue, newer), _id(dialogue, older)]
    single = await _page(dialogue, newest, 1)
    _must_be(
        single, "one session, and more to come", (len(_ids(single)), dig(single.answer.body, "has_more")), (1, True)
    )
    pages = [await _page(dialogue, newest, _PAGE_SIZE)]
    while _is_on_later_page(pages[-1], expected[-1]) and len(pages) < _MAX_PAGES:
        pages.append(await _page(dialogue, _ids(pages[-1])[-1], _PAGE_SIZE))
    ours = [session for page in pages for session in _ids(page) if session in {newest, *expected}]
    _must_be(pages[-1], f"after {newest}, of those that were begun before it, the newest first", ours, expected)


async def _page(dialogue: Dialogue, after: str, limit: int) -> Exchange:
    path = f"/v1/sessions?limit={limit}&after={quote(after, safe='')}"
    return await dialogue.do("get", {"valid": True}, path=path)


def _is_on_later_page(page: Exchange, session: str) -> bool:
    """Whether this session can only be on a page after this one."""
    ids = _ids(page)
    return bool(ids) and session not in ids and dig(page.answer.body, "has_more") is True


def _ids(page: Exchange) -> list[str]:
    data = dig(page.answer.body, "data")
    return [str(dig(session, "id")) for session in data] if isinstance(data, list) else []


def _id(dialogue: Dialogue, name: str) -> str:
    return dialogue.variables.text(name, "session")


def _must_be(page: Exchange, what: str, actual: object, expected: object) -> None:
    if actual != expected:
        raise Unmet(f"{what}: {expected}", str(actual), expectation="body", step=page.step.text)

"""The list of sessions, which random testing alone cannot judge: what the document says of its order and its pages."""

from typing import Final
from urllib.parse import quote

from continuity_conformance.core.failure import Unmet
from continuity_conformance.http.messages import dig
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange

_LONGEST: Final = 100
_PAGES: Final = 20
"""So many are read at most. Others begin sessions at the same time, and those stand between ours."""


async def lists_sessions(dialogue: Dialogue, older: str, newer: str) -> None:
    """The newest first, as many as were asked for, and after one of them those that are older."""
    await dialogue.do("chat", {"session": "$newest"}, session="$newest", say="white")
    newest, expected = _id(dialogue, "$newest"), [_id(dialogue, newer), _id(dialogue, older)]
    one = await _page(dialogue, newest, 1)
    _must_be(one, "one session, and more to come", (len(_ids(one)), dig(one.answer.body, "has_more")), (1, True))
    pages = [await _page(dialogue, newest, _LONGEST)]
    while _goes_on(pages[-1], expected[-1]) and len(pages) < _PAGES:
        pages.append(await _page(dialogue, _ids(pages[-1])[-1], _LONGEST))
    ours = [session for page in pages for session in _ids(page) if session in {newest, *expected}]
    _must_be(pages[-1], f"after {newest}, of those that were begun before it, the newest first", ours, expected)


async def _page(dialogue: Dialogue, after: str, limit: int) -> Exchange:
    path = f"/v1/sessions?limit={limit}&after={quote(after, safe='')}"
    return await dialogue.do("get", {"valid": True}, path=path)


def _goes_on(page: Exchange, wanted: str) -> bool:
    """Whether what is wanted can only be on a later page."""
    ids = _ids(page)
    return bool(ids) and wanted not in ids and dig(page.answer.body, "has_more") is True


def _ids(page: Exchange) -> list[str]:
    data = dig(page.answer.body, "data")
    return [str(dig(session, "id")) for session in data] if isinstance(data, list) else []


def _id(dialogue: Dialogue, name: str) -> str:
    return dialogue.variables.text(name, "session")


def _must_be(page: Exchange, what: str, actual: object, expected: object) -> None:
    if actual != expected:
        raise Unmet(f"{what}: {expected}", str(actual), expectation="body", step=page.step.text)

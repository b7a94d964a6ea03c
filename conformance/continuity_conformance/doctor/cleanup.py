"""Delete the sessions and responses that the doctor's requests created, and list those that cannot be deleted."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

from continuity_conformance.http.messages import Answer, Request, dig
from continuity_conformance.run.calibrate import ask
from continuity_conformance.scenario.context import Context
from continuity_conformance.target.profile import Profile

SESSION_PATHS: Final[Mapping[str, str]] = {"/v1/sessions": "", "/api/sessions": "session"}
"""The paths where servers have their sessions, and the field of the answer that contains one (empty: the answer itself)."""
_GONE: Final = frozenset({404, 410})


@dataclass(frozen=True, slots=True)
class CreatedItem:
    """A session or response that one of the doctor's requests created."""

    kind: str
    id: str
    stored: bool = True
    """False for a response that asked not to be stored."""


@dataclass(frozen=True, slots=True)
class CleanupResult:
    removed: tuple[CreatedItem, ...]
    left: tuple[CreatedItem, ...]


def session_paths(profile: Profile) -> list[str]:
    """The paths where the doctor tries to delete a session, in this order."""
    return list(dict.fromkeys((profile.sessions, *SESSION_PATHS)))


async def clean_up(context: Context, exchanges: Sequence[tuple[Request, Answer]]) -> CleanupResult:
    """Delete each created item, and look whether it is gone. If the first item of a kind cannot be deleted, the others of that kind are not tried."""
    removed: list[CreatedItem] = []
    left: list[CreatedItem] = []
    paths = {"response": ["/v1/responses"], "session": session_paths(context.target.profile)}
    for item in dict.fromkeys(_created_items(context, exchanges)):
        path, answer = await _delete(context, item, paths[item.kind])
        paths[item.kind] = [path] if path else []
        if answer is not None and answer.accepted:
            removed.append(item)
        elif answer is None or not _was_never_stored(context, item, answer):
            left.append(item)
    return CleanupResult(tuple(removed), tuple(left))


async def _delete(context: Context, item: CreatedItem, paths: Sequence[str]) -> tuple[str, Answer | None]:
    """Try to delete the item at each path. Returns the path that works and its answer, or no path and the last answer."""
    answer = None
    for path in paths:
        url = f"{path}/{quote(item.id, safe='')}"
        answer = await ask(context, "DELETE", url)
        is_known_path = path in {"/v1/responses", context.target.profile.sessions}
        if answer.accepted and not await _is_gone(context, url):
            answer = replace(answer, error="it is still there")
        if answer.accepted or (is_known_path and _was_never_stored(context, item, answer)):
            return path, answer
    return "", answer


async def _is_gone(context: Context, path: str) -> bool:
    """Whether what was deleted cannot be read. A page that answers everything has deleted nothing."""
    return not (await ask(context, "GET", path)).accepted


def _was_never_stored(context: Context, item: CreatedItem, answer: Answer) -> bool:
    """True if "not found" means that there is nothing to delete, and not that the target cannot delete."""
    offer = "stored-responses" if item.kind == "response" else "sessions"
    return answer.status in _GONE and (not item.stored or offer in context.target.offers)


def _created_items(context: Context, exchanges: Sequence[tuple[Request, Answer]]) -> Iterator[CreatedItem]:
    """Responses first, because they belong to sessions."""
    turns = [(request, answer) for request, answer in exchanges if request.method == "POST" and _is_turn(answer)]
    for request, answer in turns:
        response = dig(answer.body, "id")
        if request.path.endswith("/v1/responses") and isinstance(response, str):
            yield CreatedItem("response", response, stored=dig(request.body, "store") is not False)
    for request, answer in turns:
        for session in _sessions(context, request, answer):
            yield CreatedItem("session", session)


def _is_turn(answer: Answer) -> bool:
    """Whether an answer is that to a turn: a stream, or a JSON object with an id. Anything else has created nothing."""
    return answer.accepted and (answer.streamed or isinstance(dig(answer.body, "id"), str))


def _sessions(context: Context, request: Request, answer: Answer) -> Iterator[str]:
    header = context.target.header.lower()
    yield from (value for name, value in request.headers if name.lower() == header)
    yield from answer.fields(header)
    in_body = dig(request.body, context.target.profile.body) if context.target.profile.body else None
    yield from [in_body] if isinstance(in_body, str) else []

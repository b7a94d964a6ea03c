"""Clean-up: what the doctor's requests made is taken away again where the target lets it, and named where not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from continuity_conformance.http.messages import Answer, Request, dig
from continuity_conformance.run.calibrate import ask
from continuity_conformance.scenario.context import Context
from continuity_conformance.target.profile import Profile

SESSIONS: Final[Mapping[str, str]] = {"/v1/sessions": "", "/api/sessions": "session"}
"""Where servers have their sessions, and the field of the answer that one stands in."""
_GONE: Final = frozenset({404, 410})


@dataclass(frozen=True, slots=True)
class Made:
    """Something that a request of ours made."""

    kind: str
    id: str


@dataclass(frozen=True, slots=True)
class Cleaned:
    removed: tuple[Made, ...]
    left: tuple[Made, ...]


def places(profile: Profile) -> list[str]:
    """Where a session may be deleted, in the order in which that is tried."""
    return list(dict.fromkeys((profile.sessions, *SESSIONS)))


async def clean_up(context: Context, exchanges: Sequence[tuple[Request, Answer]]) -> Cleaned:
    """Delete each of them. Where the first of a kind cannot be deleted, the others are not tried."""
    removed: list[Made] = []
    left: list[Made] = []
    paths = {"response": ["/v1/responses"], "session": places(context.target.profile)}
    for each in dict.fromkeys(_made(context, exchanges)):
        path, answer = await _deleted(context, each, paths[each.kind])
        paths[each.kind] = [path] if path else []
        if answer is not None and answer.accepted:
            removed.append(each)
        elif answer is None or not _was_never_there(context, each, answer):
            left.append(each)
    return Cleaned(tuple(removed), tuple(left))


async def _deleted(context: Context, made: Made, paths: Sequence[str]) -> tuple[str, Answer | None]:
    """The first of these paths under which it can be deleted, and the answer; the last answer where it can be under none."""
    answer = None
    for path in paths:
        answer = await ask(context, "DELETE", f"{path}/{quote(made.id, safe='')}")
        own = path in {"/v1/responses", context.target.profile.sessions}
        if answer.accepted or (own and _was_never_there(context, made, answer)):
            return path, answer
    return "", answer


def _was_never_there(context: Context, made: Made, answer: Answer) -> bool:
    """Every response of ours asks not to be stored; a session is not there where the target has sessions, and not this one."""
    return answer.status in _GONE and (made.kind == "response" or "sessions" in context.target.offers)


def _made(context: Context, exchanges: Sequence[tuple[Request, Answer]]) -> Iterator[Made]:
    """Responses first: they belong to sessions."""
    turns = [(request, answer) for request, answer in exchanges if request.method == "POST" and answer.accepted]
    for request, answer in turns:
        response = dig(answer.body, "id")
        if request.path.endswith("/v1/responses") and isinstance(response, str):
            yield Made("response", response)
    for request, answer in turns:
        for session in _sessions(context, request, answer):
            yield Made("session", session)


def _sessions(context: Context, request: Request, answer: Answer) -> Iterator[str]:
    header = context.target.header.lower()
    yield from (value for name, value in request.headers if name.lower() == header)
    yield from answer.fields(header)
    named = dig(request.body, context.target.profile.body) if context.target.profile.body else None
    yield from [named] if isinstance(named, str) else []

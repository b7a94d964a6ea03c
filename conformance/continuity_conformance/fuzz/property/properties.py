"""Properties of our own, on what hypothesis makes up: ids from openings, names that come back exactly, ids that are accepted back."""

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from hypothesis import strategies as st

from continuity_conformance.core.budget import Budget
from continuity_conformance.core.failure import Untested
from continuity_conformance.fuzz.explore import explored
from continuity_conformance.fuzz.findings import Finding, label_of
from continuity_conformance.fuzz.names import Namespace
from continuity_conformance.fuzz.property.texts import (
    AWKWARD,
    Messages,
    awkward_conversations,
    conversations,
    header_values,
    names,
    texts,
)
from continuity_conformance.fuzz.sync_client import Wire
from continuity_conformance.http.messages import NO_UTF8, Answer, Request, dig
from continuity_spec.derivation import derive, salted

_CHAT: Final = "/v1/chat/completions"
_RESPONSES: Final = "/v1/responses"
_BAD_REQUEST: Final = 400
_NOT_FOUND: Final = 404
_AT_THE_BOUND: Final = tuple("n" * length for length in range(225, 261, 5))
"""With our prefix in front of them: lengths up to 256 and beyond."""
_LINE: Final = frozenset("\r\n\0")


class Properties:
    """The properties of one target."""

    def __init__(self, wire: Wire, names_: Namespace, budget: Budget) -> None:
        self._wire = wire
        self._names = names_
        self._budget = budget
        self._openings = 0

    # CONTRACT-10

    def same_opening(self) -> list[Finding]:
        """The id of an opening is the one that the independent model derives, and the grown conversation has it too."""
        found = explored(conversations(), self._derived, self._budget, awkward_conversations())
        if not self._openings:
            raise Untested("no generated opening is accepted, so that none derives an id")
        return found

    def _derived(self, messages: Messages) -> Iterator[Finding]:
        opening = salted(messages, self._names.prefix) if self._names.lived else messages
        grown = [*opening, {"role": "assistant", "content": "Yes?"}, {"role": "user", "content": "More."}]
        expected = derive(self._wire.target.options["derivation"], opening)
        for said in (opening, grown):
            request, answer = self._chat({"messages": said})
            # That a right opening is refused is for CONTRACT-01 to tell; it derives nothing.
            self._openings += answer.accepted
            yield from self._told(f"the id {expected}", expected, request, answer) if answer.accepted else ()

    # CONTRACT-11

    def names_come_back(self) -> list[Finding]:
        """A slug, a header value and a response id are refused with 400, or are taken exactly as they are."""
        headers = [*(text for text in AWKWARD if not set(text) & _LINE), *_AT_THE_BOUND, NO_UTF8]
        found = explored(header_values(), self._header, self._budget, headers)
        if "responses" in self._wire.target.offers:
            found += explored(names(), self._slug, self._budget, [*AWKWARD, *_AT_THE_BOUND])
            found += explored(names(), self._response_id, self._budget)
        return found

    def _header(self, value: str) -> Iterator[Finding]:
        session = self._own(value).rstrip(" \t")
        request, answer = self._chat(
            {"messages": [{"role": "user", "content": "Hello"}]}, [(self._wire.target.header, session)]
        )
        if answer.status == _BAD_REQUEST:
            return
        yield from self._told(f"400, or the id {session!r}", session, request, answer)
        if "sessions" in self._wire.target.offers and answer.accepted and NO_UTF8 not in session:
            yield from self._stored(f"/v1/sessions/{quote(session, safe='')}", "id", session)

    def _slug(self, value: str) -> Iterator[Finding]:
        slug, other = self._own(value + "x"), ""
        request, answer = self._respond({"conversation": slug})
        if answer.status == _BAD_REQUEST:
            return
        session = self._session(answer)
        yield from self._told(f"400, or the session of {slug!r}", session or "a session", request, answer)
        yield from self._told(f"the session {session}", session, *self._respond({"conversation": {"id": slug}}))
        for other in {slug[:-1] + "y", unicodedata.normalize("NFKC", slug), slug.casefold()} - {slug}:
            yield from self._another(slug, session, *self._respond({"conversation": other}))
        if "sessions" in self._wire.target.offers and session:
            yield from self._stored(f"/v1/sessions/{quote(session, safe='')}", "conversation", slug)

    def _another(self, slug: str, session: str, request: Request, answer: Answer) -> Iterator[Finding]:
        if answer.accepted and self._session(answer) == session:
            yield self._finding(f"another session than that of {slug!r}", f"the same, {session}", request, answer)

    def _response_id(self, value: str) -> Iterator[Finding]:
        request, answer = self._respond({"previous_response_id": self._own(value)})
        if answer.status not in {_BAD_REQUEST, _NOT_FOUND}:
            yield self._finding("400 or 404: nobody made this id", str(answer.status), request, answer)

    def _stored(self, path: str, field: str, expected: str) -> Iterator[Finding]:
        """Where sessions can be read, the name is kept as it was given. A server may leave a slug out."""
        request = self._wire.request("GET", path)
        answer = self._wire.send(request)
        kept = dig(self._wire.target.profile.session(answer.body), field)
        if not answer.accepted or kept not in {None, expected}:
            yield self._finding(
                f"{field} {expected!r}", repr(kept) if answer.accepted else str(answer.status), request, answer
            )

    # CONTRACT-09

    def accepted_back(self) -> list[Finding]:
        """The id that a turn of any kind tells is taken by the next one."""
        extra = st.fixed_dictionaries(
            {},
            optional={
                "seed": st.integers(0, 9),
                "n": st.just(1),
                "user": texts(5),
                "temperature": st.floats(0, 2),
                "stream": st.booleans(),
                "store": st.booleans(),
                "metadata": st.dictionaries(st.sampled_from("abc"), texts(5), max_size=2),
            },
        )
        offered = [_CHAT, *([_RESPONSES] if "responses" in self._wire.target.offers else [])]
        return explored(st.tuples(st.sampled_from(offered), extra), self._goes_on, self._budget)

    def _goes_on(self, turn: tuple[str, dict[str, Any]]) -> Iterator[Finding]:
        path, extra = turn
        if "streaming" not in self._wire.target.offers:
            extra = {**extra, "stream": False}
        said = {"input": self._names.fresh()} if path == _RESPONSES else {"messages": [_user(self._names.fresh())]}
        request, answer = self._post(path, {**said, **extra})
        told = answer.fields(self._wire.target.header)
        if not answer.accepted or len(told) != 1 or not told[0]:
            shown = str(answer.status) if not answer.accepted else ", ".join(map(repr, told)) or "none"
            yield self._finding(f"2xx with one {self._wire.target.header}", shown, request, answer)
            return
        back = self._chat({"messages": [_user("And then?")]}, [(self._wire.target.header, told[0])])
        yield from self._told(f"the id {told[0]!r}, which was told before", told[0], *back)

    # All

    def _own(self, value: str) -> str:
        return f"{self._names.fresh()}-{value}"

    def _session(self, answer: Answer) -> str:
        return next(iter(answer.fields(self._wire.target.header)), "")

    def _told(self, expected: str, session: str, request: Request, answer: Answer) -> Iterator[Finding]:
        told = answer.fields(self._wire.target.header)
        if not answer.accepted or told != [session]:
            actual = str(answer.status or answer.error) if not answer.accepted else ", ".join(map(repr, told)) or "none"
            yield self._finding(expected, actual, request, answer)

    def _chat(self, body: Mapping[str, Any], headers: list[tuple[str, str]] | None = None) -> tuple[Request, Answer]:
        return self._post(_CHAT, body, headers)

    def _respond(self, body: Mapping[str, Any]) -> tuple[Request, Answer]:
        return self._post(_RESPONSES, {"input": "Hello", **body})

    def _post(
        self, path: str, body: Mapping[str, Any], headers: list[tuple[str, str]] | None = None
    ) -> tuple[Request, Answer]:
        request = self._wire.request(
            "POST", path, {"model": self._wire.target.profile.model, **body}, headers=headers or ()
        )
        return request, self._wire.send(request)

    @staticmethod
    def _finding(expected: str, actual: str, request: Request, answer: Answer) -> Finding:
        return Finding("session", label_of(request), expected, actual, request, answer)


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}

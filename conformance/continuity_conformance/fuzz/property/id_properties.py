"""Properties of ids and slugs: openings derive the right id, names come back unchanged, ids are accepted back."""

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from hypothesis import strategies as st

from continuity_conformance.core.budget import Budget
from continuity_conformance.core.failure import Untested
from continuity_conformance.fuzz.explore import explore
from continuity_conformance.fuzz.findings import Finding, operation_label
from continuity_conformance.fuzz.names import RunNames
from continuity_conformance.fuzz.property.texts import (
    AWKWARD,
    Messages,
    awkward_conversations,
    conversations,
    header_values,
    names,
    texts,
)
from continuity_conformance.fuzz.sync_client import SyncClient
from continuity_conformance.http.messages import NO_UTF8, Answer, Request, dig
from continuity_spec.derivation import defines, derive, salted

_CHAT: Final = "/v1/chat/completions"
_RESPONSES: Final = "/v1/responses"
_REFUSALS: Final = frozenset({400, 404, 422})
"""The statuses that refuse a name: it is malformed, or unknown."""
_LONG_NAMES: Final = tuple("n" * length for length in range(225, 261, 5))
"""With our prefix these have lengths around the limit of 256."""
_RESPONSES_OF_A_SLUG: Final = 5
"""The slug, the same as an object, and three similar ones."""
_NOT_IN_HEADERS: Final = frozenset("\r\n\0")


class IdProperties:
    """The properties of the ids and slugs of one target."""

    def __init__(self, client: SyncClient, run_names: RunNames, budget: Budget) -> None:
        self._client = client
        self._names = run_names
        self._budget = budget
        self._accepted_openings = 0

    # CONTRACT-10

    def derived_ids(self) -> list[Finding]:
        """An opening has the id that our own derivation gives, and so has the longer conversation."""
        findings = explore(
            conversations(), self._must_derive, self._budget, awkward_conversations(), self._client.at_once
        )
        if not self._accepted_openings:
            raise Untested("no generated opening is accepted, so no derived id can be compared")
        return findings

    def _must_derive(self, messages: Messages) -> Iterator[Finding]:
        version = self._client.target.options["derivation"]
        if not defines(version, messages):
            return
        opening = salted(messages, self._names.prefix) if self._names.salt_openings else messages
        longer = [*opening, {"role": "assistant", "content": "Yes?"}, {"role": "user", "content": "More."}]
        expected = derive(version, opening)
        for conversation in (opening, longer):
            request, answer = self._chat({"messages": conversation})
            # CONTRACT-01 reports a valid opening that is refused. Here it has no id to compare.
            self._accepted_openings += answer.accepted
            yield from self._must_reveal(f"the id {expected}", expected, request, answer) if answer.accepted else ()

    # CONTRACT-11

    def unchanged_names(self) -> list[Finding]:
        """A header value, a slug and a response id are refused, or the server uses them unchanged."""
        target, findings, at_once = self._client.target, list[Finding](), self._client.at_once
        headers = [*(text for text in AWKWARD if not set(text) & _NOT_IN_HEADERS), *_LONG_NAMES, NO_UTF8]
        if "chat" in target.offers:
            findings += explore(header_values(), self._header_unchanged, self._budget, headers, at_once)
        if "responses" in target.offers and target.profile.slugs == "named":
            findings += explore(names(), self._slug_unchanged, self._budget, [*AWKWARD, *_LONG_NAMES], at_once)
        if "responses" in target.offers:
            findings += explore(names(), self._unknown_response_refused, self._budget)
        return findings

    def _header_unchanged(self, value: str) -> Iterator[Finding]:
        session = self._unique(value).rstrip(" \t")
        request, answer = self._chat(
            {"messages": [{"role": "user", "content": "Hello"}]}, [(self._client.target.header, session)]
        )
        if answer.status in _REFUSALS:
            return
        yield from self._must_reveal(f"a refusal (400, 404, 422), or the id {session!r}", session, request, answer)
        if "sessions" in self._client.target.offers and answer.accepted and NO_UTF8 not in session:
            yield from self._must_store(f"/v1/sessions/{quote(session, safe='')}", "id", session)

    def _slug_unchanged(self, value: str) -> Iterator[Finding]:
        """The slug leads to its session in both notations, and similar slugs lead to other sessions."""
        with self._client.room(_RESPONSES_OF_A_SLUG):
            yield from self._slug_in_its_room(self._unique(value + "x"))

    def _slug_in_its_room(self, slug: str) -> Iterator[Finding]:
        request, answer = self._respond({"conversation": slug})
        if answer.status in _REFUSALS:
            return
        session, expected = self._session(answer), f"a refusal (400, 404, 422), or the session of {slug!r}"
        yield from self._must_reveal(expected, session or "a session", request, answer)
        as_object = self._respond({"conversation": {"id": slug}})
        if as_object[1].status not in _REFUSALS:
            yield from self._must_reveal(f"the session {session}", session, *as_object)
        for similar in {slug[:-1] + "y", unicodedata.normalize("NFKC", slug), slug.casefold()} - {slug}:
            yield from self._must_differ(slug, session, *self._respond({"conversation": similar}))
        if "sessions" in self._client.target.offers and session:
            yield from self._must_store(f"/v1/sessions/{quote(session, safe='')}", "conversation", slug)

    def _must_differ(self, slug: str, session: str, request: Request, answer: Answer) -> Iterator[Finding]:
        if answer.accepted and self._session(answer) == session:
            yield self._finding(f"another session than that of {slug!r}", f"the same, {session}", request, answer)

    def _unknown_response_refused(self, value: str) -> Iterator[Finding]:
        request, answer = self._respond({"previous_response_id": self._unique(value)})
        if answer.status not in _REFUSALS:
            yield self._finding("400, 404 or 422: nobody made this id", str(answer.status), request, answer)

    def _must_store(self, path: str, field: str, expected: str) -> Iterator[Finding]:
        """The session that can be read has the name unchanged. A server may leave a slug out, and refuse an id in a path."""
        request = self._client.request("GET", path)
        answer = self._client.send(request)
        stored = dig(self._client.target.profile.session(answer.body), field)
        if answer.status not in _REFUSALS and (not answer.accepted or stored not in {None, expected}):
            yield self._finding(
                f"{field} {expected!r}", repr(stored) if answer.accepted else str(answer.status), request, answer
            )

    # CONTRACT-09

    def ids_accepted_back(self) -> list[Finding]:
        """The next turn accepts the id that a turn of any kind reveals."""
        extra = st.fixed_dictionaries(
            {},
            optional={
                "seed": st.integers(0, 9),
                "n": st.just(1),
                "user": texts(5),
                "temperature": st.floats(0, 2),
                "stream": st.booleans(),
                "metadata": st.dictionaries(st.sampled_from("abc"), texts(5), max_size=2),
            },
        )
        offered = [_CHAT, *([_RESPONSES] if "responses" in self._client.target.offers else [])]
        return explore(st.tuples(st.sampled_from(offered), extra), self._must_continue, self._budget)

    def _must_continue(self, turn: tuple[str, dict[str, Any]]) -> Iterator[Finding]:
        path, extra = turn
        if "streaming" not in self._client.target.offers:
            extra = {**extra, "stream": False}
        text = self._names.new()
        content = {"input": text} if path == _RESPONSES else {"messages": [_user(text)]}
        with self._client.room(int(path == _RESPONSES)):
            yield from self._continued(*self._post(path, {**content, **extra}))

    def _continued(self, request: Request, answer: Answer) -> Iterator[Finding]:
        sessions = answer.fields(self._client.target.header)
        if not answer.accepted or len(sessions) != 1 or not sessions[0]:
            actual = str(answer.status) if not answer.accepted else ", ".join(map(repr, sessions)) or "none"
            yield self._finding(f"2xx with one {self._client.target.header}", actual, request, answer)
            return
        next_turn = self._chat({"messages": [_user("And then?")]}, [(self._client.target.header, sessions[0])])
        yield from self._must_reveal(f"the id {sessions[0]!r}, which was told before", sessions[0], *next_turn)

    # All

    def _unique(self, value: str) -> str:
        return f"{self._names.new()}-{value}"

    def _session(self, answer: Answer) -> str:
        return next(iter(answer.fields(self._client.target.header)), "")

    def _must_reveal(self, expected: str, session: str, request: Request, answer: Answer) -> Iterator[Finding]:
        """The answer is a success and its header has exactly this session id."""
        sessions = answer.fields(self._client.target.header)
        if not answer.accepted or sessions != [session]:
            revealed = ", ".join(map(repr, sessions)) or "none"
            actual = revealed if answer.accepted else str(answer.status or answer.error)
            yield self._finding(expected, actual, request, answer)

    def _chat(self, body: Mapping[str, Any], headers: list[tuple[str, str]] | None = None) -> tuple[Request, Answer]:
        return self._post(_CHAT, body, headers)

    def _respond(self, body: Mapping[str, Any]) -> tuple[Request, Answer]:
        return self._post(_RESPONSES, {"input": "Hello", **body})

    def _post(
        self, path: str, body: Mapping[str, Any], headers: list[tuple[str, str]] | None = None
    ) -> tuple[Request, Answer]:
        request = self._client.request(
            "POST", path, {"model": self._client.target.profile.model, **body}, headers=headers or ()
        )
        return request, self._client.send(request)

    @staticmethod
    def _finding(expected: str, actual: str, request: Request, answer: Answer) -> Finding:
        return Finding("session", operation_label(request), expected, actual, request, answer)


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}

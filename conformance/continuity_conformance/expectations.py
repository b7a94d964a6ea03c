"""Expectations: one function a word. Each holds, or raises `Unmet` with what was expected and what was there.

What cannot be observed here raises `Untested`; it is noted, and never hides a visible failure of a later expectation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from continuity_conformance.failure import Unmet, Untested
from continuity_conformance.views import matches, unpaired

if TYPE_CHECKING:
    from continuity_conformance.dialogue import Dialogue
    from continuity_conformance.stage import Exchange
    from continuity_spec import Step

_ASKED_OF_A_REFUSAL: Final = frozenset({"headers", "like", "body"})
_BUSY: Final = 409
_TURNS: Final = frozenset({"chat", "respond"})


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges the exchanges of one step: one, or the copies that were sent at once."""

    dialogue: Dialogue
    step: Step
    number: str
    exchanges: Sequence[Exchange]

    async def judge(self) -> None:
        accepted = self._without_busy()
        for exchange in accepted:
            await self._expect(exchange, self.step.expect)
        if "serial" in self.step.expect:
            await self._named("serial", self._serial(accepted))

    def _without_busy(self) -> list[Exchange]:
        """Of turns sent at once, 409 is always allowed where the target rejects; at least one must be accepted."""
        concurrent = len(self.exchanges) > 1 or "." in self.exchanges[0].number
        if not concurrent or self.dialogue.stage.target.options["turns"] != "reject":
            return list(self.exchanges)
        kept = [exchange for exchange in self.exchanges if exchange.answer.status != _BUSY]
        if not kept and len(self.exchanges) > 1:
            raise self._unmet("status", Unmet("at least one turn accepted", "409 for all of them"))
        return kept

    async def _expect(self, exchange: Exchange, expect: Mapping[str, object]) -> None:
        """All of a group of expectations. What is not said to fail must succeed."""
        await self._named("status", self._status(exchange, expect))
        refused = not exchange.answer.accepted
        if refused and exchange.mark and self.dialogue.stage.target.observed == "probe":
            await self._named("status", self._never_reached_the_model(exchange))
        for word, value in expect.items():
            if word not in {"status", "serial"} and not (refused and word not in _ASKED_OF_A_REFUSAL | _structural(word)):
                await self._named(word, self._one(word, exchange, value))

    async def _one(self, word: str, exchange: Exchange, value: object) -> None:
        if word == "either":
            await self._either(exchange, value)
        elif word.startswith("by "):
            await self._expect(exchange, self._branch(word, value))
        else:
            await EXPECTATIONS[word](self.dialogue, exchange, value)

    def _branch(self, word: str, value: object) -> Mapping[str, object]:
        assert isinstance(value, Mapping)
        branch = value[self.dialogue.stage.target.options[word.removeprefix("by ")]]
        assert isinstance(branch, Mapping)
        return branch

    async def _either(self, exchange: Exchange, groups: object) -> None:
        """At least one group holds wholly. Names that a group captures count only if it holds."""
        assert isinstance(groups, Sequence)
        troubles: list[Unmet] = []
        names = self.dialogue.names
        for group in groups:
            self.dialogue.names = names.copy()
            try:
                await self._expect(exchange, group)
            except Unmet as trouble:
                troubles.append(trouble)
            else:
                return
            finally:
                kept, self.dialogue.names = self.dialogue.names, names
            names.become(kept)
        expected = ", or ".join(f"{trouble.expectation} {trouble.expected}" for trouble in troubles)
        raise Unmet(expected, "; ".join(f"{trouble.expectation} {trouble.actual}" for trouble in troubles))

    async def _named(self, word: str, checking: Awaitable[None]) -> None:
        try:
            await checking
        except Unmet as trouble:
            raise self._unmet(word, trouble) from None
        except Untested as reason:
            self.dialogue.untested.append(str(reason))

    def _unmet(self, word: str, trouble: Unmet) -> Unmet:
        return trouble.at(expectation=word, step=self.step.text, number=self.number)

    async def _status(self, exchange: Exchange, expect: Mapping[str, object]) -> None:
        groups = [group for word, group in expect.items() if _structural(word)]
        if "status" not in expect and groups and any(_says_status(group) for group in groups):
            return  # the group that applies says which status is right
        answer, wanted = exchange.answer, expect.get("status", "2xx")
        allowed = wanted if isinstance(wanted, list | tuple) else [wanted]
        if not any(is_status(answer.status, one) for one in allowed):
            actual = answer.error or f"{answer.status} {answer.text[:160]}"
            raise Unmet(" or ".join(str(one) for one in allowed), actual)
        if answer.error and answer.status and "any" not in allowed:
            raise Unmet("a whole answer", answer.error)
        if exchange.reading is not None and exchange.reading.flaw:
            raise Unmet("an answer to the turn", exchange.reading.flaw)

    async def _never_reached_the_model(self, exchange: Exchange) -> None:
        """A refusal (4xx, 503) never reaches the model."""
        if exchange.answer.refused and exchange.answer.status != _BUSY and exchange.label not in self._accepted_before():
            times = await self.dialogue.times_asked(exchange.label)
            if times:
                raise Unmet("a refused turn that never reaches the model", f"the model was asked {times} times")

    def _accepted_before(self) -> set[str]:
        return {exchange.label for exchange in self.dialogue.exchanges if exchange.answer.accepted}

    async def _serial(self, accepted: Sequence[Exchange]) -> None:
        """The accepted copies have an order in which each saw exactly those before it."""
        ours = {exchange.label for exchange in accepted}
        views = []
        for exchange in accepted:
            await self.dialogue.view(exchange)
            views.append([label for label in exchange.seen or () if label.partition(" (")[0] in ours])
        views.sort(key=len)
        for before, after in zip([[], *views], views, strict=False):
            if sorted(after[:-1]) != sorted(before) or not after or after[-1] in before:
                raise Unmet("an order in which each saw exactly those before it", "; ".join(_said(view) for view in views))


def _structural(word: str) -> frozenset[str]:
    return frozenset({word}) if word == "either" or word.startswith("by ") else frozenset()


def _says_status(groups: object) -> bool:
    listed = groups.values() if isinstance(groups, Mapping) else groups
    assert isinstance(listed, Sequence) or not isinstance(listed, Mapping)
    return any("status" in group for group in listed)  # type: ignore[attr-defined]


def is_status(status: int, wanted: object) -> bool:
    if wanted == "any":
        return True
    text = str(wanted)
    return str(status) == text or (text.endswith("xx") and str(status // 100) == text[0] and status > 0)


def _said(labels: Sequence[str]) -> str:
    return ", ".join(labels) or "nothing"


# What the client is told


async def session(dialogue: Dialogue, exchange: Exchange, wanted: Any) -> None:
    _must_be(dialogue, exchange, wanted, "session", told_session(dialogue, exchange))


def told_session(dialogue: Dialogue, exchange: Exchange) -> str:
    """The session that the answer tells: the continuity header, exactly once."""
    target = dialogue.stage.target
    values = exchange.answer.fields(target.header)
    if not values and target.options["tells"] == "nothing":
        raise Untested("the target does not tell the session")
    if len(values) != 1 or not values[0]:
        raise Unmet(f"{target.header}, exactly once and not empty", " and ".join(repr(value) for value in values) or "absent")
    return values[0]


async def announces(dialogue: Dialogue, exchange: Exchange, wanted: Any) -> None:
    named = exchange.reading.session if exchange.reading else None
    if not named or not isinstance(named.get("id"), str):
        raise Unmet(f"{wanted} in the stream, before its end marker", "no session in it")
    _must_be(dialogue, exchange, wanted, "session", named["id"])


async def response(dialogue: Dialogue, exchange: Exchange, wanted: Any) -> None:
    _must_be(dialogue, exchange, wanted, "response", exchange.reading.id if exchange.reading else None)


async def answer(dialogue: Dialogue, exchange: Exchange, wanted: Any) -> None:
    reading = exchange.reading
    _must_be(dialogue, exchange, wanted, "answer", f"{reading.id} {reading.text}" if reading else None)


def _must_be(dialogue: Dialogue, exchange: Exchange, wanted: str, kind: str, actual: object) -> None:
    """The same name is the same value; a new name is a new value."""
    names = dialogue.names
    known = names.known(wanted)
    if known is None:
        twin = names.capture(wanted, kind, exchange.principal, actual)
        if twin:
            raise Unmet(f"a {kind} of its own ({wanted})", f"the same as {twin}: {actual}")
    elif known != actual:
        raise Unmet(f"{known} ({wanted})" if wanted.startswith("$") else str(known), names.spoken(actual))


_BLANKED = re.compile(r"[0-9]+|[0-9a-f]{6,}")


async def like(dialogue: Dialogue, exchange: Exchange, wanted: Any) -> None:
    """Same status, header names and body, with known ids, texts, times and numbers blanked."""
    shape = _shape(exchange)
    known = dialogue.names.known(wanted)
    if known is None:
        dialogue.names.capture(wanted, f"like {wanted}", exchange.principal, shape)
    elif known != shape:
        raise Unmet(f"the same answer as before: {known}", shape)


def _shape(exchange: Exchange) -> str:
    body = exchange.answer.body
    text = json.dumps(body, sort_keys=True) if body is not None else exchange.answer.text
    sent = sorted((part for part in re.split(r"[/?&]", exchange.request.path) if part), key=len, reverse=True)
    for part in [*sent, *(value for _, value in exchange.request.headers), *_strings(exchange.request.body)]:
        text = text.replace(part, "*") if len(part) > 3 else text  # noqa: PLR2004
    text = re.sub(r'"(content|text|id|session|created|created_at)": ("(?:[^"\\]|\\.)*"|\d+)', r'"\1": *', text)
    names = sorted({name.lower() for name, _ in exchange.answer.headers})
    return f"{exchange.answer.status} {names} {_BLANKED.sub('*', text)}"


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    listed = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return [text for item in listed for text in _strings(item)]


async def headers(dialogue: Dialogue, exchange: Exchange, wanted: Any) -> None:
    filled: Any = dialogue.names.fill(wanted)
    for name, value in filled.items():
        _match_header(name, exchange.answer.fields(name), value)


def _match_header(name: str, values: Sequence[str], wanted: object) -> None:
    actual = " and ".join(f"{name}: {value}" for value in values) or "absent"
    listed = [word.strip().lower() for value in values for word in value.split(",")]
    holds = {
        "present": len(values) == 1 and values[0].strip() != "",
        "absent": not values,
    }.get(wanted if isinstance(wanted, str) else "", list(values) == [wanted])
    if isinstance(wanted, Mapping):
        holds = str(wanted["lists"]).lower() in listed
    if not holds:
        raise Unmet(f"{name}: {_in_words(wanted)}", actual)


def _in_words(wanted: object) -> str:
    if wanted == "present":
        return "present, exactly once and not empty"
    return f"a list with {wanted['lists']}" if isinstance(wanted, Mapping) else str(wanted)


async def body(dialogue: Dialogue, exchange: Exchange, wanted: Any) -> None:
    trouble = _differs(dialogue.names.fill(wanted), exchange.answer.body, "body")
    if trouble:
        raise Unmet(*trouble)


def _differs(wanted: object, actual: object, path: str) -> tuple[str, str] | None:
    if isinstance(wanted, Mapping) and "lists" not in wanted:
        if not isinstance(actual, Mapping):
            return f"{path}: an object", repr(actual)[:160]
        parts = ((field, value, f"{path}.{field}") for field, value in wanted.items())
        found = (_differs(value, actual.get(field, _ABSENT), here) for field, value, here in parts)
        return next((trouble for trouble in found if trouble), None)
    if isinstance(wanted, Mapping):
        holds = isinstance(actual, Sequence) and wanted["lists"] in actual
    else:
        holds = {"present": actual is not _ABSENT, "absent": actual is _ABSENT}.get(str(wanted), wanted == actual)
    return None if holds else (f"{path}: {_in_words(wanted)}", repr(actual)[:160])


class _Absent:
    def __repr__(self) -> str:
        return "absent"


_ABSENT: Final = _Absent()


async def valid(dialogue: Dialogue, exchange: Exchange, _: Any) -> None:
    """Status, content type, headers and body validate against openapi.yaml."""
    found = exchange.answer
    fields: dict[str, list[str]] = {}
    for name, value in found.headers:
        fields.setdefault(name.lower(), []).append(value)
    path = exchange.request.url.removeprefix(dialogue.stage.server.url)
    problems = dialogue.stage.contract.problems(
        exchange.request.method, path, found.status, found.content_type, fields, found.body, found.events
    )
    if problems:
        raise Unmet("an answer as openapi.yaml describes it", "; ".join(problems[:5]))


async def agrees(dialogue: Dialogue, exchange: Exchange, _: Any) -> None:
    """The body's session, where there is one, is the header's; after a rotation in a stream it names the header's as its parent."""
    named = exchange.reading.session if exchange.reading else None
    if named is None:
        return
    told = told_session(dialogue, exchange)
    rotated = exchange.answer.streamed and named.get("rotated_from") == told
    if named.get("id") != told and not rotated:
        raise Unmet(f"session.id {told}, as the header says", f"session.id {named.get('id')}")


# What the model saw


async def sees(dialogue: Dialogue, exchange: Exchange, wanted: Any) -> None:
    await dialogue.view(exchange)
    pattern = [exchange.label if label == exchange.step.params.get("say") else label for label in wanted]
    if not matches(pattern, list(exchange.seen or ()), dialogue.copies):
        raise Unmet(_said(pattern), _said(exchange.seen or ()))


async def recalls(dialogue: Dialogue, exchange: Exchange, wanted: Any) -> None:
    """At least these, in order, each verbatim once or else in a summary."""
    view = await dialogue.view(exchange)
    seen = list(exchange.seen or ())
    labels = [label for word in wanted for label in _expanded(word, dialogue)]
    twice = [label for label in labels if seen.count(label) > 1]
    lost = [label for label in labels if label not in seen and dialogue.mark(label) not in view.summarised]
    verbatim = [label for label in labels if label in seen]
    exact = not any(word.startswith("each ") for word in wanted)
    in_order = not exact or [label for label in seen if label in verbatim] == verbatim
    if twice or lost or not in_order:
        summarised = [dialogue.label(mark) for mark in view.summarised]
        raise Unmet(_said(wanted), f"{_said(seen)} and in a summary {_said(sorted(summarised))}")


def _expanded(word: str, dialogue: Dialogue) -> list[str]:
    return dialogue.copies[word.removeprefix("each ")] if word.startswith("each ") else [word]


async def forgets(dialogue: Dialogue, exchange: Exchange, wanted: Any) -> None:
    view = await dialogue.view(exchange)
    marks = {sighting.mark for sighting in view.sightings} | view.summarised
    kept = [label for label in wanted if dialogue.mark(label) in marks]
    if kept:
        raise Unmet(f"nothing of {_said(wanted)}", _said(kept))


async def summary(dialogue: Dialogue, exchange: Exchange, wanted: Any) -> None:
    view = await dialogue.view(exchange)
    if view.has_summary is not wanted:
        raise Unmet("a summary" if wanted else "no summary", "a summary" if view.has_summary else "no summary")


async def system(dialogue: Dialogue, exchange: Exchange, wanted: Any) -> None:
    view = await dialogue.view(exchange)
    actual = [dialogue.system_label(mark) for mark in view.system_marks()]
    if actual != list(wanted):
        raise Unmet(_said(wanted), _said(actual))


async def tools(dialogue: Dialogue, exchange: Exchange, _: Any) -> None:
    messages = (await dialogue.view(exchange)).messages
    if messages is None:
        raise Untested("tool calls in what the model saw cannot be observed without the probe model")
    troubles = unpaired(messages)
    if troubles:
        raise Unmet("every tool call with its result right after it, and the reverse", "; ".join(troubles))


async def reads(dialogue: Dialogue, exchange: Exchange, wanted: Any) -> None:
    results = (await dialogue.view(exchange)).results()
    note = "" if wanted == "nothing" else dialogue.names.text(wanted)
    actual = results[-1] if results else "no result of a tool"
    if (note and note not in actual) or (not note and "continuity-" in actual):
        raise Unmet(note or "nothing", actual[:200])


async def ran(dialogue: Dialogue, _: Exchange, wanted: Any) -> None:
    for label, times in wanted.items():
        actual = await dialogue.times_asked(label)
        if actual != times:
            raise Unmet(f"{label}: {times}", f"{label}: {actual}")


Expectation = Callable[["Dialogue", "Exchange", Any], Awaitable[None]]
EXPECTATIONS: Final[Mapping[str, Expectation]] = {
    check.__name__: check
    for check in (
        session, announces, response, answer, like, headers, body, valid, agrees,
        sees, recalls, forgets, summary, system, tools, reads, ran,
    )
}

"""The judge: whether the answers to a step are what the step expects. It reads the record, and changes nothing in the dialogue.

The words of the vocabulary stand in `client` (status line, headers, body), `stream`, `leaks` and `model`, one function a word. What cannot be
observed is noted as not tested; that never hides a visible failure of a later expectation.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from continuity_conformance.core.failure import Inapplicable, Unmet, Untested
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.expect import client, leaks, model, stream
from continuity_conformance.scenario.record import Record
from continuity_conformance.scenario.variables import Variables
from continuity_spec import Step

_ASKED_OF_A_REFUSAL: Final = frozenset({"headers", "like", "body", "hides", "envelope", "discreet", "one_id", "ended"})
"""Expectations that are still checked where the request was refused."""
_BUSY: Final = 409
_TOO_MANY: Final = 429
_REACHES_THE_MODEL: Final = frozenset({_BUSY, _TOO_MANY})
"""Statuses of refused turns that the model may have seen: a busy session is seen late, and 429 may come from the model itself."""

Expectation = Callable[[Record, Exchange, Any], Awaitable[None]]
EXPECTATIONS: Final[Mapping[str, Expectation]] = {
    **client.EXPECTATIONS,
    **stream.EXPECTATIONS,
    **leaks.EXPECTATIONS,
    **model.EXPECTATIONS,
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of judging a step: the variables that it captured, and why something could not be tested."""

    variables: Variables
    untested: tuple[str, ...] = ()


async def judge(record: Record, step: Step, number: str, exchanges: Sequence[Exchange]) -> Judgement:
    """Judge the exchanges of one step: one, or the copies that were sent at once. Raises Unmet at the first failure."""
    variables = record.variables.fork()
    judging = _Judging(replace(record, variables=variables), step, number, exchanges)
    await judging.run()
    return Judgement(variables, tuple(judging.untested))


@dataclass(frozen=True, slots=True)
class _Judging:
    """One step that is being judged. `record` has variables of its own."""

    record: Record
    step: Step
    number: str
    exchanges: Sequence[Exchange]
    untested: list[str] = field(default_factory=list)

    async def run(self) -> None:
        judged = self._without_busy()
        for exchange in judged:
            await self._expect(exchange, self.step.expect)
        if "serial" in self.step.expect:
            await self._named("serial", self._serial(judged))

    def _without_busy(self) -> list[Exchange]:
        """Of turns sent at once, some may be 409 if the target rejects turns of a busy session, or 429 if it declares a limit; at least one must be accepted."""
        concurrent = len(self.exchanges) > 1 or "." in self.exchanges[0].number
        asked_for = self.step.expect.get("status") in (_BUSY, _TOO_MANY) or "only_if" in self.step.expect
        if asked_for or not concurrent:
            return list(self.exchanges)
        kept = [exchange for exchange in self.exchanges if not self._may_be_rejected(exchange)]
        if not kept and len(self.exchanges) > 1:
            raise self._unmet("status", Unmet("at least one turn accepted", "409 or 429 for all of them"))
        return kept

    def _may_be_rejected(self, exchange: Exchange) -> bool:
        target = self.record.context.target
        busy = target.options["turns"] == "reject" and exchange.answer.status == _BUSY
        return busy or target.profile.limits.allow(exchange.answer)

    async def _expect(self, exchange: Exchange, expect: Mapping[str, object]) -> None:
        """Check a group of expectations. Without a `status` the request must succeed."""
        _leave_unless(exchange, expect)
        await self._named("status", self._status(exchange, expect))
        refused = not exchange.answer.accepted
        if refused and exchange.mark and self.record.context.target.observed == "probe":
            await self._named("status", self._never_reached_the_model(exchange))
        for word, value in expect.items():
            if word not in {"status", "only_if", "serial"} and not (
                refused and not _asked_of_a_refusal(word, value, expect)
            ):
                await self._named(word, self._one(word, exchange, value))

    async def _one(self, word: str, exchange: Exchange, value: object) -> None:
        if word == "either":
            await self._either(exchange, value)
        elif word.startswith("by "):
            await self._expect(exchange, self._branch(word, value))
        else:
            await EXPECTATIONS[word](self.record, exchange, value)

    def _branch(self, word: str, value: object) -> Mapping[str, object]:
        assert isinstance(value, Mapping)
        branch = value[self.record.context.target.options[word.removeprefix("by ")]]
        assert isinstance(branch, Mapping)
        return branch

    async def _either(self, exchange: Exchange, groups: object) -> None:
        """At least one group holds wholly. The variables that a group captures count only if it holds."""
        assert isinstance(groups, Sequence)
        failures: list[Unmet] = []
        for group in groups:
            variables = self.record.variables.fork()
            try:
                await self._with(variables)._expect(exchange, group)  # noqa: SLF001 - the same step, with other variables
            except Unmet as failure:
                failures.append(failure)
            else:
                self.record.variables.merge(variables)
                return
        expected = ", or ".join(f"{failure.expectation} {failure.expected}" for failure in failures)
        actual = "; ".join(f"{failure.expectation} {failure.actual}" for failure in failures)
        raise Unmet(expected, actual, kinds=failures[0].kinds)

    def _with(self, variables: Variables) -> "_Judging":
        return replace(self, record=replace(self.record, variables=variables))

    async def _named(self, word: str, checking: Awaitable[None]) -> None:
        try:
            await checking
        except Unmet as failure:
            raise self._unmet(word, failure) from None
        except Untested as reason:
            self.untested.append(str(reason))

    def _unmet(self, word: str, failure: Unmet) -> Unmet:
        return failure.at(expectation=word, step=self.step.text, number=self.number)

    async def _status(self, exchange: Exchange, expect: Mapping[str, object]) -> None:
        groups = [group for word, group in expect.items() if _is_group(word)]
        if "status" not in expect and groups and any(_says_status(group) for group in groups):
            return  # each branch states its own status
        answer, wanted = exchange.answer, expect.get("status", expect.get("only_if", "2xx"))
        allowed = wanted if isinstance(wanted, list | tuple) else [wanted]
        if not any(is_status(answer.outcome, one) for one in allowed):
            told = ", but the answer tells a failure:" if answer.outcome != answer.status else ""
            actual = answer.error or f"{answer.status}{told} {answer.text[:160]}"
            raise Unmet(" or ".join(str(one) for one in allowed), actual, kinds=(f"status {answer.status or 'none'}",))
        if answer.error and answer.status and "any" not in allowed:
            raise Unmet("a whole answer", answer.error)
        if exchange.reading is not None and exchange.reading.flaw and "any" not in allowed:
            raise Unmet("an answer to the turn", exchange.reading.flaw)

    async def _never_reached_the_model(self, exchange: Exchange) -> None:
        """A refused turn (4xx, 503) never reaches the model. Exception: whether a turn can be stored is known only after the model has answered."""
        deleted = any(step.verb == "delete" for step in exchange.step.during)
        unstorable = "write" in exchange.broken or "model" in exchange.step.params or deleted
        refused_later = exchange.answer.status in _REACHES_THE_MODEL or unstorable
        if exchange.answer.refused and not refused_later and exchange.label not in self._accepted_before():
            times = await self.record.times_asked(exchange.label)
            if times:
                raise Unmet("a refused turn that never reaches the model", f"the model was asked {times} times")

    def _accepted_before(self) -> set[str]:
        return {exchange.label for exchange in self.record.exchanges if exchange.answer.accepted}

    async def _serial(self, accepted: Sequence[Exchange]) -> None:
        """The turns sent at once ran one after the other: sorted by what they saw, each saw all earlier ones and no others."""
        ours = {exchange.label for exchange in accepted}
        views = []
        for exchange in accepted:
            await self.record.view(exchange)
            views.append([label for label in exchange.seen or () if label.partition(" (")[0] in ours])
        views.sort(key=len)
        for before, after in zip([[], *views], views, strict=False):
            if sorted(after[:-1]) != sorted(before) or not after or after[-1] in before:
                doubled = any(len(set(view)) < len(view) for view in views)
                # Turns that do not wait for each other are stored between each other: later turns see questions without answers.
                raise Unmet(
                    "an order in which each saw exactly those before it",
                    "; ".join(model.listed(view) for view in views),
                    kinds=("doubled",) if doubled else ("serial", "partial"),
                )


def _leave_unless(exchange: Exchange, expect: Mapping[str, object]) -> None:
    """`only_if`: with any other status the rest of the scenario does not apply to this target."""
    wanted = expect.get("only_if", "any")
    allowed = wanted if isinstance(wanted, list | tuple) else [wanted]
    if not any(is_status(exchange.answer.outcome, one) for one in allowed):
        raise Inapplicable(f"the target answers this turn with {exchange.answer.outcome or 'nothing'}, as it may")


def _is_group(word: str) -> bool:
    """`either` and `by OPTION` contain other expectations."""
    return word == "either" or word.startswith("by ")


def _asked_of_a_refusal(word: str, value: object, expect: Mapping[str, object]) -> bool:
    """Whether an expectation is checked where the request was refused. Groups that speak of no status are about an accepted one, if the step allows both."""
    if _is_group(word):
        return "status" not in expect or _says_status(value)
    return word in _ASKED_OF_A_REFUSAL


def _says_status(groups: object) -> bool:
    listed = groups.values() if isinstance(groups, Mapping) else groups
    return any("status" in group for group in listed)  # type: ignore[attr-defined]


def is_status(status: int, wanted: object) -> bool:
    if wanted == "any":
        return True
    text = str(wanted)
    return str(status) == text or (text.endswith("xx") and str(status // 100) == text[0] and status > 0)

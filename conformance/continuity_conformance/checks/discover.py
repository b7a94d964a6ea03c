"""Claims: what a target says of itself, and what shows whether that is so (DISCOVER-02).

What it claims to do rests on verdicts of the same run: each option value and each offer names the requirements that are about it. What it claims
*not* to do is played by no scenario, so it is tried here, once and cheaply. Where the verdicts are missing the claim is not tested.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from continuity_conformance.checks.registry import check, concluding
from continuity_conformance.core.failure import Inapplicable, Unmet, Untested
from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.http.messages import dig
from continuity_conformance.probe.marks import answer_mark
from continuity_conformance.scenario.context import Target
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange

Trial = Callable[[Dialogue], Awaitable[bool]]
PROVEN_BY: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "header": ("ECHO-02",),
        "derivation: content-v1": ("DERIVE-04",),
        "derivation: content-v2": ("DERIVE-12",),
        "compaction: rotate": ("COMPRESS-01", "COMPRESS-10"),
        "compaction: in-place": ("COMPRESS-14",),
        "echo: tip": ("COMPRESS-01",),
        "echo: alias": ("COMPRESS-01",),
        "degraded: answer": ("HISTORY-05",),
        "degraded: refuse": ("HISTORY-05",),
        "turns: serialize": ("CONCUR-01",),
        "turns: reject": ("CONCUR-01",),
        "environment: shared": ("ENV-02",),
        "environment: per-session": ("ENV-02",),
        "tells: header": ("ECHO-01",),
        "offers responses": ("ECHO-05",),
        "offers streaming": ("ECHO-03",),
        "offers compression": ("COMPRESS-02", "COMPRESS-14"),
        "offers cors": ("ECHO-07",),
        "offers idempotency": ("ISOLATE-10",),
        "offers sessions": ("DELETE-01",),
        "offers client-tools": ("HISTORY-11",),
        "offers tenants": ("ISOLATE-06",),
    }
)
TRIALS: Final[dict[str, Trial]] = {}
"""What shows that a claim *not* to do something is untrue."""
UNPROVABLE: Final = frozenset({"offers replicas"})
"""What nobody can see from outside one address."""
_PAIR: Final = 2
_ANY: Final[Mapping[str, object]] = {"status": "any"}


def claims_of(target: Target) -> Iterator[str]:
    """Everything that a target claims, in the words of `PROVEN_BY` and of `TRIALS`."""
    declared = target.declared
    yield from ["header"] if declared.header else []
    yield from (f"{option}: {value}" for option, value in declared.options.items())
    yield from _about_offers(target) if declared.offers else ()
    yield from ["single user"] if target.single_user else []
    yield from ["slugs: none"] if target.profile.slugs == "none" and "responses" in target.offers else []


def _about_offers(target: Target) -> Iterator[str]:
    yield from (f"offers {offer}" for offer in sorted(target.offers))
    yield from (claim for claim in TRIALS if claim.startswith("no ") and claim[3:] not in target.offers)


async def must_be_true(dialogue: Dialogue) -> None:
    """Every claim is true. Raises Unmet at the first that is not; what cannot be shown is noted as not tested."""
    decided = dialogue.context.decided
    claims = list(claims_of(dialogue.context.target))
    if not claims:
        raise Inapplicable("the target declares nothing, neither in its capabilities nor in a profile")
    for claim in claims:
        if claim in TRIALS:
            await _try(dialogue, claim)
        else:
            dialogue.untested.extend(_judge(claim, decided))
    if not any(_is_shown(claim, decided) for claim in claims):
        dialogue.untested.append("no claim rests on a requirement that passed; what is not there proves nothing")


def _is_shown(claim: str, decided: Mapping[str, Result]) -> bool:
    provers = PROVEN_BY.get(claim, ())
    return any(ident in decided and decided[ident].verdict is Verdict.PASS for ident in provers)


def _judge(claim: str, decided: Mapping[str, Result]) -> list[str]:
    """Give the verdicts that a claim rests on and that are missing."""
    provers = PROVEN_BY.get(claim, ())
    failed = [decided[ident] for ident in provers if ident in decided and decided[ident].verdict is Verdict.FAIL]
    if failed:
        actual = f"{failed[0].id} fails: {failed[0].reason}"
        raise Unmet(claim, actual, expectation="claim", step="what the target declares", number="last")
    settled = {Verdict.PASS, Verdict.NOT_APPLICABLE}
    missing = [ident for ident in provers if ident not in decided or decided[ident].verdict not in settled]
    return [f"the claim “{claim}” rests on {', '.join(missing)}, which is not tested"] if missing else []


async def _try(dialogue: Dialogue, claim: str) -> None:
    try:
        there = await TRIALS[claim](dialogue)
    except Untested:
        return  # what cannot be tried here is believed, and proves nothing
    if there:
        shown = dialogue.exchanges[-1]
        actual = f"{shown.request.method} {shown.request.path} shows otherwise ({shown.answer.status})"
        raise Unmet(claim, actual, expectation="claim", step="what the target declares", number="last")


def trial(claim: str) -> Callable[[Trial], Trial]:
    """Register what shows that this claim is untrue."""

    def register(function: Trial) -> Trial:
        TRIALS[claim] = function
        return function

    return register


@trial("no responses")
async def _responses(dialogue: Dialogue) -> bool:
    return (await dialogue.do("respond", _ANY, say="red", store=False)).answer.accepted


@trial("slugs: none")
async def _slugs(dialogue: Dialogue) -> bool:
    return (await dialogue.do("respond", _ANY, say="red", conversation="$slug", store=False)).answer.accepted


@trial("no streaming")
async def _streaming(dialogue: Dialogue) -> bool:
    answer = (await dialogue.do("chat", _ANY, say="red", stream=True)).answer
    return answer.accepted and answer.streamed


@trial("no sessions")
async def _sessions(dialogue: Dialogue) -> bool:
    session = dialogue.variables.text("$id", "session")
    await dialogue.do("chat", _ANY, session="$id", say="red")
    answer = (await dialogue.do("get", _ANY, session="$id")).answer
    return answer.accepted and dig(answer.body, "id") == session


@trial("no cors")
async def _cors(dialogue: Dialogue) -> bool:
    headers = {"Origin": "$ORIGIN", "Access-Control-Request-Method": "POST"}
    asked = await dialogue.do("request", _ANY, method="OPTIONS", path="/v1/chat/completions", headers=headers)
    return bool(asked.answer.fields("Access-Control-Allow-Origin"))


@trial("no idempotency")
async def _idempotency(dialogue: Dialogue) -> bool:
    first = await dialogue.do("chat", _ANY, session="$id", say="red", idempotency_key="$key")
    again = await dialogue.do("chat", _ANY, session="$id", say="red", idempotency_key="$key")
    return _said(first) is not None and (_said(first) == _said(again) or _is_one_call(first, again))


@trial("no client-tools")
async def _client_tools(dialogue: Dialogue) -> bool:
    asked = await dialogue.do("chat", _ANY, session="$id", say="blue", model="calls client")
    return bool(asked.reading and asked.reading.tool_calls)


@trial("no compression")
async def _compression(dialogue: Dialogue) -> bool:
    await dialogue.do("chat", _ANY, session="$long", say="red")
    return (await dialogue.do("chat", _ANY, session="$long", say="blue", compress=True)).answer.accepted


@trial("derivation: none")
async def _derivation(dialogue: Dialogue) -> bool:
    header = dialogue.context.target.header
    first = await dialogue.do("chat", _ANY, say="white")
    again = await dialogue.do("chat", _ANY, say="white")
    return bool(first.answer.fields(header)) and first.answer.fields(header) == again.answer.fields(header)


@trial("environment: none")
async def _environment(dialogue: Dialogue) -> bool:
    note = dialogue.variables.text("$note")
    await dialogue.do("chat", _ANY, session="$id", say="green", model={"writes": "$note"})
    asked = await dialogue.do("chat", _ANY, session="$id", say="grey", model={"reads": "$note"})
    return any(note in result for result in (await dialogue.record.view(asked)).results())


@trial("tells: nothing")
async def _tells(dialogue: Dialogue) -> bool:
    asked = await dialogue.do("chat", _ANY, session="$id", say="black")
    return bool(asked.answer.fields(dialogue.context.target.header))


@trial("single user")
async def _single_user(dialogue: Dialogue) -> bool:
    if "bob" not in dialogue.context.target.profile.principals:
        raise Untested("no key of a second principal")
    return (await dialogue.do("chat", _ANY, session="$his", say="pink", **{"as": "bob"})).answer.accepted


def _is_one_call(first: Exchange, again: Exchange) -> bool:
    """Whether the model was asked once for two answers, though they may have two ids. The numbers are those of its calls."""
    readings = [(each.reading.text, each.mark) for each in (first, again) if each.reading]
    numbers = {answered.call for text, mark in readings if (answered := answer_mark(text, mark)) is not None}
    return len(readings) == _PAIR and len(numbers) == 1 and readings[0] == readings[1]


def _said(exchange: Exchange) -> tuple[str | None, str] | None:
    return (exchange.reading.id, exchange.reading.text) if exchange.reading else None


@concluding
@check
async def claims_are_true(dialogue: Dialogue) -> None:
    """DISCOVER-02: what the target says of itself is what the other requirements have shown."""
    await must_be_true(dialogue)

"""Expectations on what the model saw in the call whose answer the client got. Each one holds, or raises `Unmet`."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from continuity_conformance.core.failure import Unmet, Untested
from continuity_conformance.probe.view import View, matches, unpaired
from continuity_conformance.scenario.exchange import Exchange
from continuity_conformance.scenario.record import Record

_MISUNDERSTOOD: Final = re.compile(
    r"(unknown|no such|unregistered|unavailable|not a valid) (tool|function)|(tool|function)\b.{0,60}\b(not found|unknown|does not exist|not available)"
    r"|(unknown|unexpected|invalid|missing|unrecogni[sz]ed)( \w+){0,3} (argument|parameter|property|field|keyword)"
    r"|(argument|parameter|property|field)s?\b.{0,60}\b(required|missing|invalid|unexpected)|validation error",
    re.IGNORECASE | re.DOTALL,
)
"""What a tool says of a call with a wrong name or wrong arguments. A file that is missing is something else."""


def listed(labels: Sequence[str]) -> str:
    return ", ".join(labels) or "nothing"


async def sees(record: Record, exchange: Exchange, wanted: Any) -> None:
    await record.view(exchange)
    pattern = [exchange.label if label == exchange.step.params.get("say") else label for label in wanted]
    seen = list(exchange.seen or ())
    if not matches(pattern, seen, record.copies) and not fits_window(record, pattern, seen):
        kinds = differences(pattern, exchange.seen or (), record.copies)
        raise Unmet(listed(pattern), listed(exchange.seen or ()), kinds=kinds)


def fits_window(record: Record, pattern: Sequence[str], seen: Sequence[str]) -> bool:
    """Whether the target dropped the oldest turns as it declares: `compaction: truncate`, and a context that this conversation fills."""
    filling = record.context.target.profile.filling
    turns = [turn for label in pattern if not label.startswith("maybe ") for turn in _expanded(label, record)]
    if not truncates(record) or filling is None or len(turns) < filling.turns:
        return False
    size = sum(len(record.wording.user_text(turn)) for turn in turns)
    full = size >= filling.characters * filling.turns
    return full and len(seen) >= filling.turns - 1 and is_end(pattern, seen, record.copies)


def is_end(pattern: Sequence[str], seen: Sequence[str], copies: Mapping[str, Sequence[str]]) -> bool:
    """Whether `seen` is what is left of the pattern after its oldest turns were dropped. Of the copies of `each x`, any may be the oldest."""
    for number, label in enumerate(pattern):
        accepted = set(copies[label.removeprefix("each ")]) if label.startswith("each ") else set()
        left = [count for count in range(1, len(accepted)) if len(accepted & set(seen[:count])) == count]
        if matches(pattern[number:], seen, copies):
            return True
        if any(matches(pattern[number + 1 :], seen[count:], copies) for count in left):
            return True
    return False


def differences(
    pattern: Sequence[str], seen: Sequence[str], copies: Mapping[str, Sequence[str]] | None = None
) -> tuple[str, ...]:
    """In which ways the turns that the model saw differ from those of a pattern. `copies`: the turns that `each x` stands for."""
    expected = {label.removeprefix("maybe ").removeprefix("each ") for label in pattern}
    needed = {label for label in pattern if not label.startswith(("maybe ", "each "))}
    every = [label.removeprefix("each ") for label in pattern if label.startswith("each ")]
    needed |= {turn for label in every for turn in (copies or {}).get(label, ())}
    messages = [message for label in seen for message in _messages(label)]
    turns = [turn for _, turn in messages]
    doubled = len(set(messages)) < len(messages)
    found = {
        "doubled": doubled,
        "missing": bool(needed - set(turns)),
        "foreign": any(label not in expected and label.partition("/")[0] not in expected for label in turns),
        "partial": doubled and any(len({part for part, of in messages if of == turn}) == 1 for turn in turns),
    }
    kinds = tuple(kind for kind, holds in found.items() if holds)
    return kinds or (("partial",) if any(map(is_partial, seen)) else ("reordered",))


def _messages(label: str) -> list[tuple[str, str]]:
    """The messages that a label stands for: a question, an answer, or both, and their turn. A question and its answer that stand apart are not a doubled turn."""
    turn, _, flaw = label.partition(" (")
    if turn.startswith("answer to "):
        return [("answer", turn.removeprefix("answer to "))]
    return [("question", turn)] if flaw == "no answer)" else [("question", turn), ("answer", turn)]


def is_partial(label: str) -> bool:
    """Whether the model saw only a part of this turn: a question without its answer, or the reverse."""
    return " (" in label


async def recalls(record: Record, exchange: Exchange, wanted: Any) -> None:
    """At least these turns in order, each once: verbatim or in a summary, or in the one way that is demanded."""
    view = await record.view(exchange)
    seen = list(exchange.seen or ())
    verbatim_only, summarised_only = (_with(word, wanted) for word in ("verbatim", "summarised"))
    labels = [label for word in wanted for label in _expanded(word, record)]
    twice = [label for label in labels if seen.count(label) > 1]
    twice += [
        label for label in summarised_only if label in seen and not is_kept_first(view, record.wording.mark(label))
    ]
    lost = [label for label in labels if label not in seen and not _is_covered(record, view, label)]
    lost += [label for label in verbatim_only if label not in seen]
    verbatim = [label for label in labels if label in seen]
    exact = not any(word.startswith("each ") for word in wanted)
    in_order = not exact or [label for label in seen if label in verbatim] == verbatim
    if not twice and in_order and lost and not set(lost) & {exchange.label, *verbatim_only}:
        lost = await _unexplained(record, view, lost)
    if twice or lost or not in_order:
        summarised = [record.wording.label(mark) for mark in view.summarised]
        partial = [label for label in lost if any(is_partial(each) and each.startswith(f"{label} (") for each in seen)]
        found = {"doubled": twice, "missing": set(lost) - set(partial), "partial": partial}
        kinds = tuple(kind for kind, labels in found.items() if labels) or ("reordered",)
        actual = f"{listed(seen)} and in a summary {listed(sorted(summarised))}"
        raise Unmet(listed(wanted), actual, kinds=kinds)


def is_kept_first(view: View, mark: str) -> bool:
    """Whether a turn is verbatim because the target keeps the first turns, and summarises others in their place."""
    seen = {sighting.mark for sighting in view.sightings if sighting.kind != "summary"}
    return mark not in view.summarised and bool(view.summarised - seen)


def _is_covered(record: Record, view: View, label: str) -> bool:
    """Whether a turn is in a summary: one of the model's, or one in which the target itself quotes the turn."""
    mark = record.wording.mark(label)
    return mark in view.summarised or (record.may_be_quoted(label) and mark in view.quoted())


async def _unexplained(record: Record, view: View, lost: Sequence[str]) -> list[str]:
    """Of the turns that the model did not see, those that it should have seen. Raises Untested if a summary cannot be read."""
    if not all(record.may_be_gone(label) for label in lost):
        return list(lost)
    if truncates(record):
        return []
    if await record.has_unreadable_summary(view):
        raise Untested("the target writes its summary itself, without the model: what it covers cannot be read")
    return list(lost)


def truncates(record: Record) -> bool:
    """Whether the target declares that it drops the oldest turns, without a summary."""
    return record.context.target.options["compaction"] == "truncate"


def _with(modifier: str, wanted: Sequence[str]) -> list[str]:
    return [word.removeprefix(f"{modifier} ") for word in wanted if word.startswith(f"{modifier} ")]


def _expanded(word: str, record: Record) -> list[str]:
    if word.startswith("each "):
        return record.copies[word.removeprefix("each ")]
    return [word.removeprefix("verbatim ").removeprefix("summarised ")]


async def forgets(record: Record, exchange: Exchange, wanted: Any) -> None:
    view = await record.view(exchange)
    marks = {sighting.mark for sighting in view.sightings} | view.summarised
    kept = [label for label in wanted if record.wording.mark(label) in marks]
    if kept:
        raise Unmet(f"nothing of {listed(wanted)}", listed(kept))


async def summary(record: Record, exchange: Exchange, wanted: Any) -> None:
    view = await record.view(exchange)
    there = view.has_summary or any(mark in record.compacted for mark in view.quoted())
    if wanted and not there and truncates(record):
        return  # it declares that there is none
    if wanted and not there and await record.has_unreadable_summary(view):
        raise Untested("the target writes its summary itself, without the model: whether it is one cannot be read")
    if there is not wanted:
        raise Unmet("a summary" if wanted else "no summary", "a summary" if there else "no summary")


async def system(record: Record, exchange: Exchange, wanted: Any) -> None:
    view = await record.view(exchange)
    actual = [record.wording.system_label(mark) for mark in view.system_marks()]
    if actual != list(wanted):
        raise Unmet(listed(wanted), listed(actual))


async def tools(record: Record, exchange: Exchange, _: Any) -> None:
    messages = (await record.view(exchange)).messages
    if messages is None:
        raise Untested("tool calls in what the model saw cannot be observed without the probe model")
    problems = unpaired(messages)
    if problems:
        kinds = ("doubled",) if any(problem.endswith(" twice") for problem in problems) else ()
        expected = "every tool call with its result right after it, and the reverse"
        raise Unmet(expected, "; ".join(problems), kinds=kinds)


async def reads(record: Record, exchange: Exchange, wanted: Any) -> None:
    results = (await record.view(exchange)).results()
    note = "" if wanted == "nothing" else record.variables.text(wanted)
    actual = results[-1] if results else "no result of a tool"
    if (note and note not in actual) or (not note and "continuity-" in actual):
        await _require_working_tools(record, exchange)
        raise Unmet(note or "nothing", actual[:200])


async def _require_working_tools(record: Record, exchange: Exchange) -> None:
    """Raise Untested if the target did not understand a call of its own tools: then the profile describes them wrongly."""
    turns = [each for each in record.exchanges if isinstance(each.step.params.get("model"), Mapping)]
    for turn in (*turns, exchange):
        results = (await record.view(turn)).results() if turn.answer.accepted else []
        if results and _MISUNDERSTOOD.search(results[-1]):
            raise Untested(
                f"the target did not understand the call of its tool (`tools` of the profile): {results[-1][:200]}"
            )


async def ran(record: Record, _: Exchange, wanted: Any) -> None:
    for label, times in wanted.items():
        actual = await record.times_asked(label)
        if actual != times:
            raise Unmet(f"{label}: {times}", f"{label}: {actual}")


EXPECTATIONS: Final[Mapping[str, Callable[[Record, Exchange, Any], Awaitable[None]]]] = {
    word.__name__: word for word in (sees, recalls, forgets, summary, system, tools, reads, ran)
}

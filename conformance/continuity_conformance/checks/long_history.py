"""Checks of HISTORY: what a long conversation, a message with an image, and an empty answer still are in later turns."""

from collections.abc import Mapping, Sequence
from typing import Final

from continuity_conformance.checks.registry import check
from continuity_conformance.core.failure import Inapplicable, Unmet, Untested
from continuity_conformance.probe.marks import content_text
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange

_TURNS: Final = 30
"""Sixty messages: more than the usual limits of twenty or fifty."""
_LOOKED_AT: Final = 4
_IMAGE: Final = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@check
async def long_conversation(dialogue: Dialogue) -> None:
    """HISTORY-18: after thirty turns of one conversation, the model still gets all of them, verbatim or in a summary."""
    verb, selector = named_conversation(dialogue)
    said = [f"turn {number}" for number in range(1, _TURNS + 1)]
    for number, say in enumerate(said, 1):
        # The first turns are looked at: a history that doubles would have a billion messages after thirty.
        expect = {"recalls": said[:number]} if number <= _LOOKED_AT else None
        await dialogue.do(verb, expect, say=say, **selector)
    await dialogue.do(verb, {"recalls": [*said, "last"]}, say="last", **selector)


@check
async def images_stay(dialogue: Dialogue) -> None:
    """HISTORY-19: an image that reached the model in its own turn reaches it in the next one too."""
    verb, selector = named_conversation(dialogue)
    content = {"with": _with_image(verb, dialogue.wording.user_text("red"))}
    first = await dialogue.do(verb, {"status": ["2xx", "4xx", "5xx"]}, say="red", **selector, **content)
    _require_accepted(first)
    shown = await _images(dialogue, first)
    _require_images(shown)
    second = await dialogue.do(verb, {"recalls": ["red", "blue"]}, say="blue", **selector)
    _must_equal(shown, await _images(dialogue, second))


@check
async def roles_alternate(dialogue: Dialogue) -> None:
    """HISTORY-22: after an empty answer there is still an assistant message between the two messages of the user."""
    verb, selector = named_conversation(dialogue)
    await dialogue.do(verb, {"sees": ["red"]}, say="red", **selector)
    silent = await dialogue.do(verb, {"status": ["2xx", "4xx", "5xx"]}, say="blue", model="says nothing", **selector)
    if not silent.answer.accepted:
        raise Inapplicable(f"the target takes an empty answer for a failure: {silent.answer.status}")
    last = await dialogue.do(verb, {"recalls": ["red", "blue", "green"]}, say="green", **selector)
    messages = (await dialogue.record.view(last)).messages
    if messages is None:
        raise Untested("the roles of what the model got cannot be observed without the probe model")
    _must_alternate(messages, f"[u:{silent.mark}]", f"[u:{last.mark}]")


def _must_alternate(messages: Sequence[Mapping[str, object]], silent: str, last: str) -> None:
    texts = [content_text(message.get("content")) for message in messages]
    first = next((place for place, text in enumerate(texts) if silent in text), len(texts))
    second = next((place for place, text in enumerate(texts) if last in text), first)
    between = [str(message.get("role")) for message in messages[first + 1 : second]]
    if first < second and "assistant" not in between:
        raise Unmet(
            "an assistant message between them", ", ".join(between) or "none", expectation="roles", step="the next turn"
        )


def named_conversation(dialogue: Dialogue) -> tuple[str, dict[str, object]]:
    """The verb and the parameter of turns in one conversation that the client names."""
    target = dialogue.context.target
    if "chat" in target.offers:
        return "chat", {"session": "$id"}
    if not target.takes_slugs:
        raise Untested("the target has neither chat sessions nor slugs, so no session can be named")
    return "respond", {"conversation": "$slug"}


def _with_image(verb: str, text: str) -> dict[str, object]:
    """Return the field of the body that has a text and an image in one message."""
    if verb == "chat":
        parts = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": _IMAGE}}]
        return {"messages": [{"role": "user", "content": parts}]}
    parts = [{"type": "input_text", "text": text}, {"type": "input_image", "image_url": _IMAGE}]
    return {"input": [{"type": "message", "role": "user", "content": parts}]}


def _require_accepted(exchange: Exchange) -> None:
    if not exchange.answer.accepted:
        raise Inapplicable(f"the target takes no images: {exchange.answer.status}")


def _require_images(shown: int) -> None:
    if not shown:
        raise Inapplicable("the target does not give images to its model")


async def _images(dialogue: Dialogue, exchange: Exchange) -> int:
    """Return how many images the model saw."""
    messages = (await dialogue.record.view(exchange)).messages
    if messages is None:
        raise Untested("the images that the model saw cannot be observed without the probe model")
    return sum("image" in str(part.get("type")) for message in messages for part in _parts(message))


def _parts(message: Mapping[str, object]) -> list[Mapping[str, object]]:
    content = message.get("content")
    parts = content if isinstance(content, Sequence) and not isinstance(content, str) else ()
    return [part for part in parts if isinstance(part, Mapping)]


def _must_equal(before: int, after: int) -> None:
    if after != before:
        raise Unmet(f"{before} image", f"{after} in the next turn", expectation="images", step="the next turn")

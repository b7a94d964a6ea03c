"""Check of HISTORY: what is stored of a turn is what was said in it, character by character."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from continuity_conformance.checks.long_history import named_conversation
from continuity_conformance.checks.registry import check, disturbing
from continuity_conformance.checks.support.where_possible import where_possible
from continuity_conformance.core.failure import Unmet, Untested
from continuity_conformance.probe.marks import content_text
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange

_WORDS: Final = (
    "two  blanks,\ttab,\r\nline, caf\u00e9 or cafe\u0301, \U0001f469\u200d\U0001f4bb, \u2028, 007, 1.10, 1e2, <b>&amp;</b>, \\u0041, "
    '"quoted", it\'s, 100 %s {0} $1.  \n'
)
_RESULT: Final = (
    '  {"price": 1.10, "count": 1e2,  "id": 12345678901234567890, "tag": 1, "tag": 2, "name": "\\u00e9"} \n'
)
_LONG: Final = 70_000
"""Characters: more than 65,535, where some columns end."""


@dataclass(frozen=True, slots=True)
class _Said:
    """A text that the model got in its own turn, and may get again later."""

    what: str
    role: str
    mark: str
    text: str

    def must_stay(self, messages: Sequence[Mapping[str, object]]) -> None:
        """Where the model gets this message again, it must be the same. Whether it gets it is the matter of other requirements."""
        again = [text for text in _texts(messages, self.role) if self.mark in text]
        changed = [text for text in again if self.text not in text]
        if changed:
            raise Unmet(_difference(self.text, changed[0]), _difference(changed[0], self.text), expectation=self.what)


@disturbing()
@check
async def texts_stay(dialogue: Dialogue) -> None:
    """HISTORY-20: texts, long ones too, and results of tools are the same in a later turn as in their own, and after a restart."""
    verb, selector = named_conversation(dialogue)
    said: list[_Said] = []
    await dialogue.do(verb, {}, say="elsewhere", **dict.fromkeys(selector, "$elsewhere"))
    red = await dialogue.do(verb, {"sees": ["red"]}, say="red", **selector, **_worded(dialogue, verb))
    said += [await _of_user(dialogue, red, _WORDS), *_of_model(red)]
    dialogue.wording.lengthen("blue", _LONG)
    blue = await dialogue.do(verb, {"status": ["2xx", "4xx", "5xx"]}, say="blue", **selector)
    said += [await _of_user(dialogue, blue, dialogue.wording.user_text("blue"))] if blue.answer.accepted else []
    said += [text async for text in _results(dialogue, verb, selector)]
    last = await dialogue.do(verb, {"recalls": ["red", "last"]}, say="last", **selector)
    _must_stay(said, await _messages(dialogue, last))
    await where_possible(dialogue, "restart")
    after = await dialogue.do(verb, {}, say="after", **selector)
    _must_stay(said, await _messages(dialogue, after))


def _must_stay(said: Sequence[_Said], messages: Sequence[Mapping[str, object]]) -> None:
    for each in said:
        each.must_stay(messages)


def _worded(dialogue: Dialogue, verb: str) -> dict[str, Any]:
    """The field of the body with the turn red and its words."""
    text = f"{dialogue.wording.user_text('red')} {_WORDS}"
    return {"with": {"messages": [{"role": "user", "content": text}]} if verb == "chat" else {"input": text}}


async def _results(dialogue: Dialogue, verb: str, selector: Mapping[str, object]) -> AsyncIterator[_Said]:
    """Play a turn with a tool of the client, where the target has such tools. Yield its result."""
    if "client-tools" not in dialogue.context.target.offers:
        return
    await dialogue.do(verb, {}, say="green", model="calls client", **selector)
    sent = {"returns": "green"}
    body = (
        {"messages": [_with_result(each, "content") for each in dialogue.wording.messages(sent, "green")]}
        if verb == "chat"
        else {"input": [_with_result(each, "output") for each in dialogue.wording.items(sent, "green")]}
    )
    returned = await dialogue.do(verb, {}, **sent, **selector, **{"with": body})
    got = _texts(await _messages(dialogue, returned), "tool")
    if got:
        yield _Said("result of a tool", "tool", "price", _RESULT if _RESULT in got[-1] else got[-1])


def _with_result(message: Mapping[str, object], field: str) -> Mapping[str, object]:
    is_result = message.get("role") == "tool" or message.get("type") == "function_call_output"
    return {**message, field: _RESULT} if is_result else message


async def _of_user(dialogue: Dialogue, exchange: Exchange, text: str) -> _Said:
    """What the client said, or what the target made of it for the model: it may change a text once, before it stores it."""
    mark = f"[u:{exchange.mark}]"
    got = next((each for each in _texts(await _messages(dialogue, exchange), "user") if mark in each), text)
    return _Said(f"the text of {exchange.label}", "user", mark, text if text in got else got)


def _of_model(exchange: Exchange) -> Iterator[_Said]:
    assert exchange.reading is not None
    yield _Said(f"the answer to {exchange.label}", "assistant", f"[a:{exchange.mark}", exchange.reading.text.strip())


async def _messages(dialogue: Dialogue, exchange: Exchange) -> Sequence[Mapping[str, object]]:
    messages = (await dialogue.record.view(exchange)).messages
    if messages is None:
        raise Untested("the texts that the model got cannot be compared without the probe model")
    return messages


def _texts(messages: Sequence[Mapping[str, object]], role: str) -> list[str]:
    return [content_text(message.get("content")) for message in messages if message.get("role") == role]


def _difference(text: str, other: str) -> str:
    """The place at which a text differs from another, for people."""
    place = next((k for k, (one, two) in enumerate(zip(text, other, strict=False)) if one != two), len(other))
    return f"{len(text)} characters, … {text[max(0, place - 20) : place + 20]!r}"

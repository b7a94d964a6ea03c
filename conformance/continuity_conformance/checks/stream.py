"""Checks of STREAM: the same conversation, plain and streamed, leaves the same history."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from continuity_conformance.checks.registry import check
from continuity_conformance.core.failure import Unmet, Untested
from continuity_conformance.http.messages import dig
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.scenario.exchange import Exchange

_VARYING: Final = re.compile(
    r'"(id|tool_call_id|session_id)": "[^"]*"|continuity-[0-9a-f]{12}-[\w-]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'
    r"|(?<![0-9a-f])\d+(\.\d+)?(?![0-9a-f])"
)
"""What may differ between two conversations: ids of tool calls and sessions, also in a prompt, names of this run, and
numbers such as those of model calls and times."""
_PROMPTS: Final = frozenset({"system", "developer"})
_FIRST: Final = "red"
_LAST: Final = "the last turn"
TurnParams = Mapping[str, object]


@check
async def streamed_history(dialogue: Dialogue) -> None:
    """STREAM-04: streamed turns leave the same stored history, and the same view for the model, as plain turns."""
    for selector in _selectors(dialogue):
        plain = await _history_after(dialogue, _Conversation(selector, "plain"), stream=False)
        streamed = await _history_after(dialogue, _Conversation(selector, "streamed"), stream=True)
        for plain_message, streamed_message in itertools.zip_longest(plain, streamed, fillvalue="nothing"):
            _must_equal(selector, plain_message, streamed_message)
        dialogue.untested.extend(_nothing_to_compare(selector, plain))


def _selectors(dialogue: Dialogue) -> Iterator[str]:
    """Yield the parameters that name a conversation: session header, slug, response id."""
    target = dialogue.context.target
    yield from ["session"] if "chat" in target.offers else []
    yield from ["conversation"] if target.takes_slugs else []
    yield from ["previous_response_id"] if "responses" in target.offers else []


def _nothing_to_compare(selector: str, plain: Sequence[str]) -> list[str]:
    """Return a note if the history is empty: then all turns leave the same. HISTORY fails such a server."""
    has_history = any(_FIRST in message for message in plain)
    return [] if has_history else [f"plain turns by {selector} leave no history to compare streamed turns with"]


@dataclass(slots=True)
class _Conversation:
    """A conversation, and how its next turn names it."""

    selector: str
    kind: str
    responses: int = 0

    @property
    def verb(self) -> str:
        return "chat" if self.selector == "session" else "respond"

    def params(self) -> TurnParams:
        if self.selector != "previous_response_id":
            return {self.selector: f"${self.kind}-{self.selector}"}
        return {self.selector: self._response(self.responses)} if self.responses else {}

    def captures(self) -> Mapping[str, object]:
        """Return the expectation that captures the response id for the next turn."""
        if self.selector != "previous_response_id":
            return {}
        self.responses += 1
        return {"response": self._response(self.responses)}

    def _response(self, number: int) -> str:
        return f"${self.kind}-response-{number}"


async def _history_after(dialogue: Dialogue, conversation: _Conversation, *, stream: bool) -> list[str]:
    """Play a conversation. Return what the model sees in one more turn, which is plain, and then what is stored."""
    verb = conversation.verb
    for turn in _turns(dialogue, conversation):
        selector = conversation.params()
        # ERROR-12 checks the answer when the model fails, and HISTORY-08 what is stored then.
        expected = {"status": "any"} if turn.get("model") == "breaks off" else conversation.captures()
        await dialogue.do(verb, expected, **turn, **selector, stream=stream)
    last = await dialogue.do(verb, None, say=_LAST, **conversation.params())
    return [_comparable(message) for message in (*await _seen(dialogue, last), *await _stored(dialogue, last))]


def _turns(dialogue: Dialogue, conversation: _Conversation) -> Iterator[TurnParams]:
    """Yield plain turns, a model that fails, a tool of the target (on a file of this conversation), tools of the client.

    A slow stream cuts a letter outside ASCII in two. Beside one call of the client's tool there is a text.
    """
    yield {"say": _FIRST}
    yield {"say": "white", "model": "streams slowly"}
    yield {"say": "blue", "model": "breaks off"}
    yield {"say": "green"}
    if dialogue.context.target.profile.writes and dialogue.context.target.options["environment"] != "none":
        yield {
            "say": "a note",
            "model": {"writes": f"$note-{conversation.selector.replace('_', '-')}-{conversation.kind}"},
        }
    if conversation.verb == "chat" and "client-tools" in dialogue.context.target.offers:
        yield {"say": "a question", "model": "says and calls client"}
        yield {"returns": "a question"}
        yield {"say": "two questions", "model": "calls client twice"}
        yield {"returns": "two questions"}


async def _seen(dialogue: Dialogue, last: Exchange) -> Sequence[object]:
    messages = (await dialogue.record.view(last)).messages
    if messages is None:
        raise Untested("the messages that the model saw cannot be compared without the probe model")
    # A system prompt of the target's own may name the time, or anything else that changes.
    return [message for message in messages if dig(message, "role") not in _PROMPTS]


async def _stored(dialogue: Dialogue, last: Exchange) -> Sequence[object]:
    """Return the stored messages of the session of the last turn, if the target offers to read them."""
    sessions = last.answer.fields(dialogue.context.target.header)
    if "sessions" not in dialogue.context.target.offers or not sessions:
        return ()
    path = f"/v1/sessions/{sessions[0]}/messages"
    stored = dig((await dialogue.do("get", {"status": "any"}, path=path)).answer.body, "data")
    return stored if isinstance(stored, list) else ()


def _comparable(message: object) -> str:
    return _VARYING.sub("…", json.dumps(message, sort_keys=True))


def _must_equal(selector: str, plain: str, streamed: str) -> None:
    if plain != streamed:
        raise Unmet(
            f"as after plain turns: {plain}", streamed, expectation="history", step=f"a conversation by {selector}"
        )

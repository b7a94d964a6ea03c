"""Python checks of STREAM: the same conversation, plain and streamed, and what it leaves."""

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

_THEIR_OWN: Final = re.compile(
    r'"(id|tool_call_id|session_id)": "[^"]*"|continuity-[0-9a-f]{12}-[\w-]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'
    r"|(?<![0-9a-f])\d+(\.\d+)?(?![0-9a-f])"
)
"""What two conversations may differ in: ids of tool calls and sessions, also in a prompt, names of ours, and numbers, such as those of the model's calls and times."""
_FIRST: Final = "red"
_LAST: Final = "the last turn"
Turn = Mapping[str, object]


@check
async def streamed_history(dialogue: Dialogue) -> None:
    """STREAM-04: what the next turn shows the model, and what is stored, is the same whether or not the turns were streamed."""
    for way in _ways(dialogue):
        plain = await _left(dialogue, _Conversation(way, "plain"), stream=False)
        streamed = await _left(dialogue, _Conversation(way, "streamed"), stream=True)
        for one, other in itertools.zip_longest(plain, streamed, fillvalue="nothing"):
            _must_equal(way, one, other)
        dialogue.untested.extend(_vacuous(way, plain))


def _ways(dialogue: Dialogue) -> Iterator[str]:
    """How a conversation is named: by header, by slug, by response id."""
    target = dialogue.context.target
    yield "session"
    yield from ["conversation"] if target.takes_slugs else []
    yield from ["previous_response_id"] if "responses" in target.offers else []


def _vacuous(way: str, plain: Sequence[str]) -> list[str]:
    """Who keeps nothing leaves the same after every turn; that earlier turns reach the model at all is for HISTORY to ask."""
    found = any(_FIRST in message for message in plain)
    return [] if found else [f"plain turns by {way} leave nothing that streamed ones could be compared with"]


@dataclass(slots=True)
class _Conversation:
    """A conversation, and how its next turn names it."""

    way: str
    kind: str
    responses: int = 0

    @property
    def verb(self) -> str:
        return "chat" if self.way == "session" else "respond"

    def named(self) -> Turn:
        if self.way != "previous_response_id":
            return {self.way: f"${self.kind}-{self.way}"}
        return {self.way: self._response(self.responses)} if self.responses else {}

    def captures(self) -> Mapping[str, object]:
        """What an accepted turn tells of the next one's name."""
        if self.way != "previous_response_id":
            return {}
        self.responses += 1
        return {"response": self._response(self.responses)}

    def _response(self, number: int) -> str:
        return f"${self.kind}-response-{number}"


async def _left(dialogue: Dialogue, conversation: _Conversation, *, stream: bool) -> list[str]:
    """Hold a conversation; gives what the model saw in one more turn that is plain, and then what is stored."""
    verb = conversation.verb
    for turn in _turns(dialogue, conversation):
        named = conversation.named()
        # What a failing model is answered with is for ERROR-12 to ask, and what is stored of it for HISTORY-08.
        expected = {"status": "any"} if turn.get("model") == "breaks off" else conversation.captures()
        await dialogue.do(verb, expected, **turn, **named, stream=stream)
    last = await dialogue.do(verb, None, say=_LAST, **conversation.named())
    return [_comparable(message) for message in (*await _seen(dialogue, last), *await _stored(dialogue, last))]


def _turns(dialogue: Dialogue, conversation: _Conversation) -> Iterator[Turn]:
    """Plain words, a model that fails in the middle, a tool of the target's (on a file that no other conversation touches), and one of the client's."""
    yield {"say": _FIRST}
    yield {"say": "blue", "model": "breaks off"}
    yield {"say": "green"}
    if dialogue.context.target.profile.writes:
        yield {"say": "a note", "model": {"writes": f"$note-{conversation.way.replace('_', '-')}-{conversation.kind}"}}
    if conversation.verb == "chat" and "client-tools" in dialogue.context.target.offers:
        yield {"say": "a question", "model": "calls client"}
        yield {"returns": "a question"}


async def _seen(dialogue: Dialogue, last: Exchange) -> Sequence[object]:
    messages = (await dialogue.record.view(last)).messages
    if messages is None:
        raise Untested("the messages that the model saw cannot be compared without the probe model")
    return messages


async def _stored(dialogue: Dialogue, last: Exchange) -> Sequence[object]:
    """What can be read of the session that the last turn was told to be in."""
    told = last.answer.fields(dialogue.context.target.header)
    if "sessions" not in dialogue.context.target.offers or not told:
        return ()
    stored = dig((await dialogue.do("get", path=f"/v1/sessions/{told[0]}/messages")).answer.body, "data")
    return stored if isinstance(stored, list) else ()


def _comparable(message: object) -> str:
    return _THEIR_OWN.sub("…", json.dumps(message, sort_keys=True))


def _must_equal(way: str, plain: str, streamed: str) -> None:
    if plain != streamed:
        raise Unmet(f"as after plain turns: {plain}", streamed, expectation="history", step=f"a conversation by {way}")

"""HISTORY: what the model sees, and what a turn leaves behind. Pure: messages in, messages out."""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Final, Protocol, TypeVar

from continuity_server.derivation import SYSTEM_ROLES, Message
from continuity_server.echo import Surface
from continuity_server.errors import Case, Refusal
from continuity_server.settings import Options

SUMMARY_NAME: Final = "summary"
PLACEHOLDER: Final = "[no result: the client did not return one]"

Messages = list[Message]


class StoredTurn(Protocol):
    """A turn as it is about to be stored; which session it goes to is all that a rule may ask of it."""

    @property
    def session(self) -> tuple[str, str]:
        """Give the owner and the id."""


W = TypeVar("W", bound=StoredTurn)


class Unanswered(Enum):
    """Why a turn got no answer."""

    MODEL_FAILED = "the model failed"
    REFUSED = "the history is unavailable"
    BUSY = "another turn of the session was running"


def is_system(message: Message) -> bool:
    """Tell a system prompt; the summary of a compressed history is none, although it has the role."""
    return message["role"] in SYSTEM_ROLES and message.get("name") != SUMMARY_NAME


def trailing_results(messages: Sequence[Message]) -> Messages:
    """Give the tool results that a list of messages ends with."""
    start = len(messages)
    while start and messages[start - 1]["role"] == "tool":
        start -= 1
    return list(messages[start:])


def call_ids(message: Message) -> list[str]:
    return [call["id"] for call in message.get("tool_calls") or []]


def open_calls(messages: Sequence[Message]) -> set[str]:
    """Give the calls of the last assistant message that have no result yet."""
    results = trailing_results(messages)
    before = messages[: len(messages) - len(results)]
    calls = call_ids(before[-1]) if before else []
    return set(calls) - {result["tool_call_id"] for result in results}


class History:
    """The rules about stored history."""

    options: Options

    def new_input(self, messages: Sequence[Message]) -> Messages:
        """HISTORY-01: the new input is the tool results that the body ends with, or the last user message."""
        results = trailing_results(messages)
        users = [message for message in messages if message["role"] == "user"]
        return results or users[-1:]

    def response_input(self, messages: Sequence[Message]) -> Messages:
        """Settled: all items of a response's `input` are new."""
        return [message for message in messages if not is_system(message)]

    def turn_prompts(self, messages: Sequence[Message]) -> Messages:
        """HISTORY-09: the system prompt sent with the header applies to this turn."""
        return [message for message in messages if is_system(message)]

    def recalled(self, stored: Sequence[Message]) -> Messages:
        """HISTORY-02: every earlier turn, once each, in order, with its role."""
        return list(stored)

    def history(self, stored: Sequence[Message], body: Sequence[Message]) -> Messages:  # noqa: ARG002 - the rule is that the body does not matter
        """HISTORY-01: history comes from the store; earlier messages of the body do not reach the model."""
        return self.recalled(stored)

    def derived_history(self, stored: Sequence[Message], body: Sequence[Message]) -> Messages:  # noqa: ARG002 - the rule is that the store does not matter
        """DERIVE-10: the history of a derived turn is the body's; what is stored is not added on top of it."""
        return list(body)

    def with_prompts(self, prompts: Sequence[Message], history: Sequence[Message]) -> Messages:
        """HISTORY-09: it reaches the model once: this turn's system prompt takes the place of a stored one."""
        if not prompts:
            return list(history)
        return [*prompts, *(message for message in history if not is_system(message))]

    def paired(self, messages: Sequence[Message]) -> Messages:
        """HISTORY-11: every tool call has its result right after it, and the reverse."""
        return list(self._pairs(messages))

    def _pairs(self, messages: Sequence[Message]) -> Iterator[Message]:
        for index, message in enumerate(messages):
            if message["role"] == "tool":
                continue
            yield message
            results = {result["tool_call_id"]: result for result in self._results_after(messages, index)}
            for call in call_ids(message):
                yield results.get(call) or {"role": "tool", "tool_call_id": call, "content": PLACEHOLDER}

    @staticmethod
    def _results_after(messages: Sequence[Message], index: int) -> Iterator[Message]:
        """Give the tool results right after a message. No slice here: it would copy the rest of the list for every message."""
        for message in map(messages.__getitem__, range(index + 1, len(messages))):
            if message["role"] != "tool":
                return
            yield message

    def stored_turn(self, new: Sequence[Message], made: Sequence[Message]) -> Messages:
        """HISTORY-02, -11: a turn is stored as it was: the input, the tool calls with their results, the answer."""
        return [*new, *made]

    def stored_derived(self, base: Sequence[Message], made: Sequence[Message]) -> Messages:
        """HISTORY-10: after a derived turn the session's history is the request's messages and the answer, each once."""
        return [*base, *made]

    def left_behind(self, new: Sequence[Message], why: Unanswered) -> Messages:  # noqa: ARG002 - nothing, whatever the reason
        """HISTORY-05, -08, CONCUR-01: a turn that was not answered leaves nothing behind."""
        return []

    def left_by_degraded(self, turn: Sequence[Message]) -> Messages:  # noqa: ARG002 - nothing, whatever was said
        """HISTORY-07: a turn that could not read the history does not write to it; it may be absent later."""
        return []

    def due(self, write: W) -> list[W]:
        """HISTORY-03: the turn is stored before its answer ends, so that the next one sees it at once."""
        return [write]

    def started(self, session: str) -> str:
        """HISTORY-04: an unknown id starts an empty session under that id."""
        return session

    def unreadable(self, session: str) -> str:
        """HISTORY-05: answered under the given id (degraded=answer), or refused (degraded=refuse)."""
        if self.options.degraded == "refuse":
            raise Refusal(Case.HISTORY_UNAVAILABLE, "The history of this session cannot be read now. Try again later.")
        return session

    def admitted(self, *, degraded: bool) -> bool:
        """HISTORY-06: a degraded answer says so."""
        return degraded

    def must_be_stored(self) -> bool:
        """HISTORY-14: a turn that could not be stored is not answered 2xx."""
        return True

    def failure_answer(self, refusal: Refusal) -> dict[str, Any]:
        """HISTORY-08: a failed model call is an error, never an answer with the error as its text."""
        raise refusal

    def line(self, session: str, surface: Surface) -> str:  # noqa: ARG002 - one history, whatever the endpoint
        """HISTORY-13: one session, one history, for chat and for responses."""
        return session

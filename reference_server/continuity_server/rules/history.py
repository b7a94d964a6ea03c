"""HISTORY: what the model sees of a conversation. Pure: messages in, messages out."""

from collections.abc import Iterator, Sequence
from typing import Final

from continuity_server.rules.error import Case, Refusal, invalid
from continuity_server.rules.messages import Message, Messages, call_ids, is_system, open_calls, trailing_results
from continuity_server.settings import Options

PLACEHOLDER: Final = "[no result: the client did not return one]"


class HistoryRules:
    """The rules about stored history."""

    options: Options

    def new_input(self, messages: Sequence[Message]) -> Messages:
        """HISTORY-01: the new input is the tool results that the body ends with, or the last user message."""
        results = trailing_results(messages)
        users = [message for message in messages if message["role"] == "user"]
        return results or users[-1:]

    def response_input(self, messages: Sequence[Message]) -> Messages:
        """All items of a response's `input` are new, but system prompts are not part of the history."""
        return [message for message in messages if not is_system(message)]

    def turn_prompts(self, messages: Sequence[Message]) -> Messages:
        """HISTORY-09: the system prompt sent with the header applies to this turn."""
        return [message for message in messages if is_system(message)]

    def with_prompts(self, prompts: Sequence[Message], history: Sequence[Message]) -> Messages:
        """HISTORY-09: the model sees one system prompt: that of this turn replaces a stored one."""
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
            calls = call_ids(message)
            if not calls:
                continue
            results = {result["tool_call_id"]: result for result in self._results_after(messages, index)}
            for call in calls:
                yield results.get(call) or {"role": "tool", "tool_call_id": call, "content": PLACEHOLDER}

    @staticmethod
    def _results_after(messages: Sequence[Message], index: int) -> Iterator[Message]:
        """The results of the calls of a message, which may come after an answer. A slice would copy the rest of the list for every message."""
        waiting = set(call_ids(messages[index]))
        for message in map(messages.__getitem__, range(index + 1, len(messages))):
            if message["role"] == "user" or not waiting:
                return
            waiting -= set(call_ids(message))
            if message.get("tool_call_id") in waiting:
                waiting.remove(message["tool_call_id"])
                yield message

    def check_new_input(self, before: Sequence[Message], new: Sequence[Message]) -> None:
        """HISTORY-11: there is new input, and tool results answer an open call: no model takes a result without its call."""
        if not new and not trailing_results(before):
            raise invalid("The request has no new input. End it with a user message or with tool results.")
        results = {message.get("tool_call_id") for message in new}
        if None not in results and not results & self._open_calls(before):
            message = "The tool results answer no open tool call of this session. Send a user message."
            raise Refusal(Case.TOOL_CALL_NOT_FOUND, message)

    def _open_calls(self, before: Sequence[Message]) -> set[str]:
        return open_calls(before)

    def check_may_degrade(self) -> None:
        """HISTORY-05: a turn whose history cannot be read is answered without it (degraded=answer), or refused (degraded=refuse)."""
        if self.options.degraded == "refuse":
            raise Refusal(Case.HISTORY_UNAVAILABLE, "The history of this session cannot be read now. Try again later.")

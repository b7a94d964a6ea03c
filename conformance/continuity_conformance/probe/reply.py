"""A call of the probe model, and the reply to it as OpenAI's chat completions API writes it."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from continuity_conformance.probe.marks import content_text

MODEL: Final = "probe"
_FIRST_PIECE: Final = 5
"""The length of the first piece of a streamed text."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of the model.

    `newest`: the user mark that comes last in the messages. `last`: the last message carries it, so no tool has run since.
    `summary`: the target asks for a summary.
    """

    number: int
    messages: tuple[Mapping[str, object], ...]
    newest: str
    last: bool
    summary: bool

    def as_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> "ModelCall":
        messages = data["messages"]
        assert isinstance(messages, Sequence)
        return cls(
            number=int(str(data["number"])),
            messages=tuple(messages),
            newest=str(data["newest"]),
            last=bool(data["last"]),
            summary=bool(data["summary"]),
        )


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One reply of the model: a text, one or two tool calls, or a failure.

    `breaks_off`: a streamed reply ends after its first piece.
    """

    call: ModelCall
    failed: bool = False
    limited: bool = False
    breaks_off: bool = False
    text: str = ""
    tool: str = ""
    arguments: str = ""
    second_tool: str = ""

    def completion(self) -> dict[str, object]:
        choice = {"index": 0, "message": self._message(), "logprobs": None, "finish_reason": self._finish_reason}
        return {**self._envelope("chat.completion"), "choices": [choice], "usage": self._usage()}

    def stream(self) -> list[bytes]:
        """The events of the stream, one item each."""
        pieces = [self.text[:_FIRST_PIECE], self.text[_FIRST_PIECE:]] if self.text else []
        deltas: list[dict[str, object]] = [{"role": "assistant", "content": piece} for piece in pieces]
        if self.tool:
            numbered = [{"index": index, **call} for index, call in enumerate(self._tool_calls())]
            deltas.append({"role": "assistant", "tool_calls": numbered})
        parts = [*((delta, None) for delta in deltas), ({}, self._finish_reason)]
        chunks = [
            {
                **self._envelope("chat.completion.chunk"),
                "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}],
            }
            for delta, reason in parts
        ]
        chunks[-1]["usage"] = self._usage()
        return [*(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks), b"data: [DONE]\n\n"]

    @property
    def _finish_reason(self) -> str:
        return "tool_calls" if self.tool else "stop"

    def _envelope(self, kind: str) -> dict[str, object]:
        return {"id": f"chatcmpl-probe-{self.call.number}", "object": kind, "created": int(time.time()), "model": MODEL}

    def _message(self) -> dict[str, object]:
        if self.tool:
            return {"role": "assistant", "content": None, "tool_calls": self._tool_calls()}
        return {"role": "assistant", "content": self.text, "refusal": None}

    def _tool_calls(self) -> list[dict[str, object]]:
        first = self._tool_call("", self.tool, self.arguments)
        return [first, self._tool_call("_2", self.second_tool, "{}")] if self.second_tool else [first]

    def _tool_call(self, suffix: str, tool: str, arguments: str) -> dict[str, object]:
        function = {"name": tool, "arguments": arguments}
        return {"id": f"call_probe_{self.call.number}{suffix}", "type": "function", "function": function}

    def _usage(self) -> dict[str, int]:
        """Estimated tokens: four characters each in the prompt, a fixed number in the reply."""
        prompt = sum(len(content_text(message.get("content"))) for message in self.call.messages) // 4 + 1
        return {"prompt_tokens": prompt, "completion_tokens": 8, "total_tokens": prompt + 8}

"""What every API of the probe model has in common: it reads a request as messages of chat completions, and writes a reply in its own form."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from continuity_conformance.probe.reply import ModelReply

Body = Mapping[str, Any]
Message = dict[str, object]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a request gives the model: messages and tools, both in the form of chat completions. `compacts`: it demands a summary."""

    messages: Sequence[Mapping[str, object]]
    tools: Sequence[object] = ()
    compacts: bool = False


class MalformedError(Exception):
    """A request that no model accepts."""

    def __init__(self, message: str, status: int = 400, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class WireFormat(Protocol):
    """One API of the probe model. `end`: the marker at the end of a stream, if it is more than the last event of an answer."""

    end: bytes

    def read(self, body: Body) -> Prompt: ...

    def plain(self, reply: ModelReply, body: Body) -> dict[str, object]: ...

    def stream(self, reply: ModelReply, body: Body) -> list[bytes]:
        """The pieces of the stream. The first one ends with the first piece of the answer."""
        ...

    def error(self, message: str, status: int, code: str | None = None) -> dict[str, object]: ...


def object_list(value: object, what: str) -> list[dict[str, Any]]:
    """A list of JSON objects; a missing one is empty."""
    if not isinstance(value, list | None) or not all(isinstance(each, dict) for each in value or ()):
        raise MalformedError(f"{what} must be a list of objects.")
    return value or []


def tool_call_message(calls: Sequence[tuple[str, str, str]], text: str | None = None) -> Message:
    """An assistant message that calls tools, each by id, name and arguments."""
    called = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id_, name, arguments in calls
    ]
    return {"role": "assistant", "content": text, "tool_calls": called}


def function_tool(name: object, description: object, parameters: object) -> dict[str, object]:
    """The definition of a tool, as in chat completions."""
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def named_event(data: Mapping[str, object]) -> bytes:
    """A server-sent event that has the name of its type."""
    return f"event: {data['type']}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def openai_error(message: str, status: int, code: str | None = None) -> dict[str, object]:
    kind = "server_error" if status >= 500 else "rate_limit_error" if status == 429 else "invalid_request_error"  # noqa: PLR2004 - status codes
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}

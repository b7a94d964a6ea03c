"""What every model has in common: how it is called, what it replies, and how it fails. It knows no sessions."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from continuity_server.rules.messages import Message

OnText = Callable[[str], Awaitable[None]]


class ModelFailedError(Exception):
    """The model gave no answer. `rate_limited`: it answered 429."""

    def __init__(self, message: str, *, rate_limited: bool = False) -> None:
        super().__init__(message)
        self.rate_limited = rate_limited


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the model reported them, or estimated."""

    prompt: int = 0
    completion: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.prompt + other.prompt, self.completion + other.completion)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model replied in one call. `cut`: it stopped because the reply reached its greatest length."""

    text: str
    tool_calls: tuple[dict[str, Any], ...] = ()
    usage: Usage = Usage()
    cut: bool = False

    def message(self) -> Message:
        if not self.tool_calls:
            return {"role": "assistant", "content": self.text}
        return {"role": "assistant", "content": self.text or None, "tool_calls": list(self.tool_calls)}


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the model."""

    model: str
    messages: list[Message]
    tools: list[dict[str, Any]] = field(default_factory=list)
    sampling: dict[str, Any] = field(default_factory=dict)

    def body(self, *, stream: bool) -> dict[str, Any]:
        tools = {"tools": self.tools} if self.tools else {}
        return {"model": self.model, "messages": self.messages, "stream": stream, **tools, **self.sampling}


class Model(Protocol):
    """Anything that can be asked for a reply."""

    async def ask(self, call: Call, on_text: OnText | None = None) -> Reply:
        """Return the model's reply. With `on_text` it is streamed: each piece of text is passed on as it arrives."""

    async def close(self) -> None:
        """Close connections."""

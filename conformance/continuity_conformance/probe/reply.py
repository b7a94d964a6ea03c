"""A call of the probe model, and the reply to it. How either looks on the wire is in `upstream`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

MODEL: Final = "probe"
_CUTS: Final = (5, 8)
"""Where a streamed text is cut into pieces."""
OUTPUT_TOKENS: Final = 8


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of the model.

    `messages` and `tools` have the form of chat completions, whichever API the target used. `newest`: the user mark that comes last in the
    messages. `last`: the last message carries it, so no tool has run since. `summary`: the target asks for a summary.
    """

    number: int
    messages: tuple[Mapping[str, object], ...]
    newest: str
    last: bool
    summary: bool
    tools: tuple[object, ...] = ()

    def as_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> "ModelCall":
        messages, tools = data["messages"], data.get("tools", ())
        assert isinstance(messages, Sequence)
        assert isinstance(tools, Sequence)
        return cls(
            number=int(str(data["number"])),
            messages=tuple(messages),
            newest=str(data["newest"]),
            last=bool(data["last"]),
            summary=bool(data["summary"]),
            tools=tuple(tools),
        )


@dataclass(frozen=True, slots=True)
class CalledTool:
    """One call of a tool. `arguments` is a JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One reply of the model: a text, one or two tool calls, both, or a failure.

    `breaks_off`: a streamed reply ends after its first piece; with `ends`, it has its end marker. `whole`: the first piece is the whole text. `cut_short`: the reply says that it has
    reached its greatest length.
    """

    call: ModelCall
    failed: bool = False
    limited: bool = False
    breaks_off: bool = False
    cut_short: bool = False
    ends: bool = False
    whole: bool = False
    text: str = ""
    tool_calls: tuple[CalledTool, ...] = ()

    @property
    def pieces(self) -> list[str]:
        """The text as a stream sends it."""
        first, second = (len(self.text), len(self.text)) if self.whole else _CUTS
        return [self.text[:first], self.text[first:second], self.text[second:]] if self.text else []

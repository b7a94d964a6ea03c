"""Scripts: what a scenario makes the probe model do."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Script:
    """What the probe does instead of answering at once, in the calls whose newest user mark is the script's mark.

    `limited`: it answers with 429. `breaks_off`: a stream ends after its first piece; with `ends`, it has its end marker all the same, without a reason;
    with `once`, only the first stream breaks off, and its first piece is the whole text. `pauses`: a stream waits after its first
    piece until it is released, and then goes on slowly. `slowly`: a stream comes in small pieces, and one of them ends in the middle of a letter.
    `silent`: the reply is an empty text. `cut_short`: the reply to the newest turn has the finish_reason `length`; one that goes on with it does not.
    `held`: the whole reply waits until it is released. `summary_fails`: it applies to summaries that cover the mark.
    """

    fails: bool = False
    limited: bool = False
    breaks_off: bool = False
    ends: bool = False
    once: bool = False
    pauses: bool = False
    slowly: bool = False
    silent: bool = False
    cut_short: bool = False
    summary_fails: bool = False
    held: bool = False
    tool: str = ""
    arguments: str = ""
    second_tool: str = ""
    """Another tool that is called in the same reply, or the same one again."""
    speaks: bool = False
    """There is a text beside the call of a tool."""
    same_id: bool = False
    """The call has the same id in every reply, as with models that number the calls of each reply anew."""

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> "Script":
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})  # type: ignore[arg-type]

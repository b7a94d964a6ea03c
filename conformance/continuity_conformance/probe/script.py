"""Scripts: what a scenario makes the probe model do."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Script:
    """What the probe does instead of answering at once, in the calls whose newest user mark is the script's mark.

    `limited`: it answers with 429. `breaks_off`: a stream ends after its first piece. `pauses`: a stream waits after its first
    piece until it is released. `held`: the whole reply waits until it is released. `summary_fails`: it applies to summaries that cover the mark.
    """

    fails: bool = False
    limited: bool = False
    breaks_off: bool = False
    pauses: bool = False
    summary_fails: bool = False
    held: bool = False
    tool: str = ""
    arguments: str = ""
    second_tool: str = ""
    """Another tool that is called in the same reply."""

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> "Script":
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})  # type: ignore[arg-type]

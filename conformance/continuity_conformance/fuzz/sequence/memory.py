"""What a session has of its turns, and what a model that is sent them must be seen to recall. Pure, in the words of the vocabulary."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum


class Kept(Enum):
    """How a turn reaches the model; the value is the word that stands before it in `recalls`."""

    VERBATIM = "verbatim "
    EITHER = ""
    SUMMARISED = "summarised "


@dataclass(frozen=True, slots=True)
class Turn:
    """A stored turn, by its label."""

    label: str
    kept: Kept = Kept.VERBATIM


@dataclass(frozen=True, slots=True)
class Recollection:
    """A stored history. `summary`: whether the model is sent one; None where that is the server's affair."""

    turns: tuple[Turn, ...] = ()
    summary: bool | None = False

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(turn.label for turn in self.turns)

    @property
    def exact(self) -> bool:
        """Whether it never went through a compression."""
        return self.summary is False

    def plus(self, label: str) -> "Recollection":
        """HISTORY-02: a turn is added at the end."""
        return replace(self, turns=(*self.turns, Turn(label)))

    def compressed(self, label: str) -> "Recollection":
        """COMPRESS-02, -09: the first turn is in the summary, the newest is verbatim; of those between the server may keep some."""
        first, *between = self.labels
        turns = (Turn(first, Kept.SUMMARISED), *(Turn(one, Kept.EITHER) for one in between), Turn(label))
        return Recollection(turns, summary=True)

    def told_again(self, labels: Sequence[str]) -> "Recollection":
        """DERIVE-10, COMPRESS-16: the request's own history counts; once compressed, the server may send it compressed or whole."""
        kept, summary = (Kept.VERBATIM, False) if self.exact else (Kept.EITHER, None)
        return Recollection(tuple(Turn(one, kept) for one in labels), summary)

    def sees(self, label: str) -> dict[str, object]:
        """Expect exactly these turns and the current one."""
        return {"sees": [*self.labels, label]}

    def recalls(self, label: str, said: Sequence[str]) -> dict[str, object]:
        """Expect these turns as they were kept and the current one; and nothing else of what was `said`."""
        expect: dict[str, object] = {"recalls": [*(turn.kept.value + turn.label for turn in self.turns), label]}
        others = [other for other in said if other != label and other not in self.labels]
        if others:
            expect["forgets"] = others
        if self.summary is not None:
            expect["summary"] = self.summary
        return expect

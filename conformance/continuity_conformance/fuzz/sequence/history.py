"""The stored history of a session, and what its model must see of it. Pure, in the words of the scenario vocabulary."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum


class TurnForm(Enum):
    """How a turn reaches the model. The value is the word before its label in `recalls`."""

    VERBATIM = "verbatim "
    EITHER = ""
    SUMMARISED = "summarised "


@dataclass(frozen=True, slots=True)
class HistoryTurn:
    """A stored turn, by its label."""

    label: str
    form: TurnForm = TurnForm.VERBATIM


@dataclass(frozen=True, slots=True)
class SessionHistory:
    """A stored history. `summary`: whether the model gets a summary; None where the server may choose."""

    turns: tuple[HistoryTurn, ...] = ()
    summary: bool | None = False

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(turn.label for turn in self.turns)

    @property
    def uncompressed(self) -> bool:
        """Whether it was never compressed."""
        return self.summary is False

    def plus(self, label: str) -> "SessionHistory":
        """HISTORY-02: a turn is added at the end."""
        return replace(self, turns=(*self.turns, HistoryTurn(label)))

    def compressed(self, label: str) -> "SessionHistory":
        """COMPRESS-02, -09: the first turn is in the summary, the newest is verbatim, the others may be either."""
        first, *between = self.labels
        turns = (
            HistoryTurn(first, TurnForm.SUMMARISED),
            *(HistoryTurn(other, TurnForm.EITHER) for other in between),
            HistoryTurn(label),
        )
        return SessionHistory(turns, summary=True)

    def replaced_by(self, labels: Sequence[str]) -> "SessionHistory":
        """DERIVE-10, COMPRESS-16: the history in the request counts.

        Once the session is compressed, the server may send the model a compressed history or the whole one.
        """
        form, summary = (TurnForm.VERBATIM, False) if self.uncompressed else (TurnForm.EITHER, None)
        return SessionHistory(tuple(HistoryTurn(label, form) for label in labels), summary)

    def sees(self, label: str) -> dict[str, object]:
        """Expect exactly these turns and the current one."""
        return {"sees": [*self.labels, label]}

    def recalls(self, label: str, used_labels: Sequence[str]) -> dict[str, object]:
        """Expect these turns in their form, the current one, and no other label that was ever used."""
        expect: dict[str, object] = {"recalls": [*(turn.form.value + turn.label for turn in self.turns), label]}
        others = [other for other in used_labels if other != label and other not in self.labels]
        if others:
            expect["forgets"] = others
        if self.summary is not None:
            expect["summary"] = self.summary
        return expect

"""A line that is overwritten on a terminal. Elsewhere every text is a line of its own."""

import shutil
from typing import Final, TextIO

_TWO_MINUTES: Final = 120


class LiveLine:
    """Writes to a stream. `is_live`: it is a terminal, so a text replaces the one before."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.is_live = stream.isatty()
        self._shown = 0

    def overwrite(self, text: str) -> None:
        """Use one column less than the terminal has: some terminals wrap when the last column is written."""
        if not self.is_live:
            self.write(text)
            return
        width = shutil.get_terminal_size().columns - 1
        shown = text if len(text) <= width else f"{text[: width - 1]}…"
        self._stream.write(f"\r{shown.ljust(self._shown)}")
        self._stream.flush()
        self._shown = len(shown)

    def erase(self) -> None:
        if self._shown:
            self._stream.write(f"\r{' ' * self._shown}\r")
            self._stream.flush()
            self._shown = 0

    def write(self, text: str) -> None:
        """A line that stays."""
        self.erase()
        self._stream.write(f"{text}\n")
        self._stream.flush()


def duration(seconds: float) -> str:
    """A time for people: up to two minutes in seconds."""
    whole = max(1, round(seconds))
    return f"{whole} s" if whole < _TWO_MINUTES else f"{round(whole / 60)} min"

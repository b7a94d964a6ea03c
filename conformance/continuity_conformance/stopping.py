"""SIGTERM and SIGHUP end a run as Ctrl-C does: what was decided is written, and what was started is stopped."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

from _pytest.outcomes import Exit

_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)  # Windows has no SIGHUP
_BY_SIGNAL: Final = 128
"""What shells add to the number of a signal to make an exit code."""


class Stopped(Exit):
    """Ends pytest's session in good order. To pytest it is an interruption, or it would not tell the end; the exit code is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.exit_code = _BY_SIGNAL + number


@contextmanager
def stoppable() -> Iterator[None]:
    """Signals that somebody else handles, or ignores (nohup), stay theirs; so do all outside of the main thread."""
    ours = [each for each in _SIGNALS if _in_main_thread() and signal.getsignal(each) is signal.SIG_DFL]
    for each in ours:
        signal.signal(each, _stop)
    try:
        yield
    finally:
        for each in ours:
            if signal.getsignal(each) is _stop:
                signal.signal(each, signal.SIG_DFL)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _stop(number: int, _: FrameType | None) -> NoReturn:
    """The first one is heard. Another one, until the process has ended, must not leave half of what was started running."""
    for each in _SIGNALS:
        if signal.getsignal(each) is _stop:
            signal.signal(each, signal.SIG_IGN)
    raise Stopped(number)

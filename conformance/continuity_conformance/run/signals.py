"""SIGTERM and SIGHUP end a run as Ctrl-C does: what was decided is written, and what was started is stopped.

The first of them is heard. Another one of any kind, until the process has ended, must not leave half of what was started running: people press Ctrl-C twice.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

from _pytest.outcomes import Exit

_USUAL: Final = {
    getattr(signal, name): usual
    for name, usual in (
        ("SIGTERM", signal.SIG_DFL),
        ("SIGHUP", signal.SIG_DFL),
        ("SIGINT", signal.default_int_handler),
    )
    if hasattr(signal, name)
}
"""What happens at a signal where nobody has decided otherwise. Windows has no SIGHUP."""
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
    ours = [each for each, usual in _USUAL.items() if _in_main_thread() and signal.getsignal(each) is usual]
    for each in ours:
        signal.signal(each, _stop)
    try:
        yield
    finally:
        for each in ours:
            if signal.getsignal(each) is _stop:
                signal.signal(each, _USUAL[each])


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _stop(number: int, _: FrameType | None) -> NoReturn:
    for each in _USUAL:
        if signal.getsignal(each) is _stop:
            signal.signal(each, signal.SIG_IGN)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise Stopped(number)

"""SIGTERM and SIGHUP end a run as Ctrl-C does: results are written, and servers are stopped.

Only the first signal acts; later ones are ignored during shutdown, because people press Ctrl-C twice and servers must not be left running.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

from _pytest.outcomes import Exit

_DEFAULT: Final = {
    getattr(signal, name): handler
    for name, handler in (
        ("SIGTERM", signal.SIG_DFL),
        ("SIGHUP", signal.SIG_DFL),
        ("SIGINT", signal.default_int_handler),
    )
    if hasattr(signal, name)
}
"""The handlers of a Python process that has not set any. Windows has no SIGHUP."""
_BY_SIGNAL: Final = 128
"""The exit code of a process that a signal ended is this plus the number of the signal."""


class Stopped(Exit):
    """Ends pytest's session in good order. pytest takes it for an interruption and shows the summary; the exit code is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.exit_code = _BY_SIGNAL + number


@contextmanager
def stoppable() -> Iterator[None]:
    """Handle signals that still have their default handler, in the main thread. Others (nohup ignores SIGHUP) stay as they are."""
    ours = [each for each, handler in _DEFAULT.items() if _in_main_thread() and signal.getsignal(each) is handler]
    for each in ours:
        signal.signal(each, _stop)
    try:
        yield
    finally:
        for each in ours:
            if signal.getsignal(each) is _stop:
                signal.signal(each, _DEFAULT[each])


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _stop(number: int, _: FrameType | None) -> NoReturn:
    for each in _DEFAULT:
        if signal.getsignal(each) is _stop:
            signal.signal(each, signal.SIG_IGN)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise Stopped(number)

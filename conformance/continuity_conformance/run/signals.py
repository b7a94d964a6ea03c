"""SIGTERM and SIGHUP end a run as Ctrl-C does: what was decided is written, and what was started is stopped.

Only the first signal acts; later ones are ignored during the shutdown, because people press Ctrl-C twice. A signal that was ignored from the start (nohup, a
script's `&`) stays ignored by the run, but not by the processes that it starts: a target must end at SIGTERM.
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
"""The default handler of each signal. Windows has no SIGHUP."""
_BY_SIGNAL: Final = 128
"""What shells add to the number of a signal to make an exit code."""


class Stopped(Exit):
    """Ends pytest's session in good order. To pytest it is an interruption, or it would not tell the end; the exit code is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.exit_code = _BY_SIGNAL + number


@contextmanager
def stoppable() -> Iterator[None]:
    """Stop at a signal, unless it is ignored or has a handler of somebody else. Outside of the main thread nothing changes."""
    before = {each: signal.getsignal(each) for each in _USUAL} if _in_main_thread() else {}
    ours = [each for each, handler in before.items() if handler is _USUAL[each]]
    ignored = [each for each, handler in before.items() if handler is signal.SIG_IGN]
    for each in ours:
        signal.signal(each, _stop)
    for each in ignored:
        signal.signal(each, _ignore)
    try:
        yield
    finally:
        for each in (*ours, *ignored):
            if signal.getsignal(each) in {_stop, _ignore}:
                signal.signal(each, before[each])


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _ignore(_: int, __: FrameType | None) -> None:
    """Do nothing, like SIG_IGN. Unlike SIG_IGN, a handler is not inherited by the processes that are started."""


def _stop(number: int, _: FrameType | None) -> NoReturn:
    for each in _USUAL:
        if signal.getsignal(each) is _stop:
            signal.signal(each, signal.SIG_IGN)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise Stopped(number)

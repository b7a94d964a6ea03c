"""The errors of the kit and of its set-up.

    ContinuityError             exit code
     ├─ UsageError              2   a typo in a profile, an unknown target, a missing key
     ├─ UnreachableError        3   nothing answers at the target's address
     └─ KitError                4   the kit fails, or a process that it starts
         └─ NotStartedError         the kit cannot start the target

A failed expectation is not an error: it is a verdict about the target (see `failure`).
Each message has three parts: what is wrong, where, and what to do now.
"""

from typing import ClassVar


class ContinuityError(Exception):
    """Base of all errors of the kit. `exit_code`: the exit code of `continuity` and of pytest."""

    exit_code: ClassVar[int] = 4

    def __init__(self, what: str, *, where: str = "", do: str = "") -> None:
        self.what = what
        self.where = where
        self.do = do
        super().__init__(" ".join(part for part in (f"{where}:" if where else "", what, do) if part))


class UsageError(ContinuityError):
    exit_code = 2


class UnreachableError(ContinuityError):
    exit_code = 3


class KitError(ContinuityError):
    exit_code = 4


class NotStartedError(KitError):
    """The target does not start. At the start of a run this is an error of the set-up; during a scenario it is a finding."""

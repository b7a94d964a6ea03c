"""What can go wrong in the kit or the set-up, as types.

    ContinuityError             exit code
     ├─ UsageError              2   a typo in a profile, an unknown target, a missing key
     ├─ UnreachableError        3   nothing answers at the target's address
     └─ KitError                4   the kit itself, or what it started, failed
         └─ NotStartedError         a target that the kit starts does not come up

A failed expectation is not in this tree: it is a verdict about the target, not an error.
Each message has three parts: what was wrong, where, what to do now.
"""

from typing import ClassVar


class ContinuityError(Exception):
    """Base of all errors of the kit. `exit_code` is what both commands end with."""

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
    """At the start of a run it is the set-up's fault. In the middle of a scenario it is a finding about the target."""

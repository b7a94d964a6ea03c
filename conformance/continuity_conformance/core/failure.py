"""How a scenario ends if it does not pass: an expectation fails, it does not apply, or it cannot be tested."""


class Unmet(Exception):  # noqa: N818 - it is a finding about the target, not an error
    """An expectation does not hold: the requirement fails. The player adds the step and the name of the expectation (`at`)."""

    def __init__(self, expected: str, actual: str, *, expectation: str = "", step: str = "", number: str = "") -> None:
        self.expected = expected
        self.actual = actual
        self.expectation = expectation
        self.step = step
        self.number = number
        self.sequence = ""
        self.saved = ""
        super().__init__(f"{expectation}: expected {expected}, actual {actual}")

    def at(self, *, expectation: str, step: str, number: str) -> "Unmet":
        """A copy with the place of the failure. Values that are already set stay."""
        return Unmet(
            self.expected,
            self.actual,
            expectation=self.expectation or expectation,
            step=self.step or step,
            number=self.number or number,
        )

    def with_sequence(self, sequence: str, saved: str) -> "Unmet":
        """Add the generated sequence of steps that shows the failure, and the file that it is saved in."""
        self.sequence, self.saved = sequence, saved
        return self


class Inapplicable(Exception):  # noqa: N818 - it is a finding about the target, not an error
    """The check does not apply to this target: the target does not have what the check tests. The argument is the reason."""


class Untested(Exception):  # noqa: N818 - it is a finding about the set-up, not an error
    """The scenario cannot be tested here, so it neither passes nor fails. The argument is the reason."""

"""What a scenario can end with besides success, and how a failure reads."""


class Unmet(Exception):  # noqa: N818 - it is a finding about the target, not an error
    """An expectation does not hold. Step and expectation are filled in where they are known."""

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
        return Unmet(
            self.expected,
            self.actual,
            expectation=self.expectation or expectation,
            step=self.step or step,
            number=self.number or number,
        )

    def found(self, sequence: str, saved: str) -> "Unmet":
        """The same, found in a sequence that nobody wrote: its steps, and the file that they are saved in."""
        self.sequence, self.saved = sequence, saved
        return self


class Inapplicable(Exception):  # noqa: N818 - it is a finding about the target, not an error
    """What a check is about is nothing that this target has, for this reason."""


class Untested(Exception):  # noqa: N818 - it is a finding about the set-up, not an error
    """A scenario cannot be played to its end here, for this reason."""

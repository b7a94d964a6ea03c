"""How a scenario ends if it does not pass: an expectation fails, it does not apply, or it cannot be tested."""


class Unmet(Exception):  # noqa: N818 - it is a finding about the target, not an error
    """An expectation does not hold: the requirement fails. The player adds the step and the name of the expectation (`at`).

    `kinds` says in which ways expected and actual differ, such as "doubled" or "status 404". By default it is the name of the expectation.
    """

    def __init__(  # noqa: PLR0913 - the parts of a finding
        self,
        expected: str,
        actual: str,
        *,
        expectation: str = "",
        step: str = "",
        number: str = "",
        kinds: tuple[str, ...] = (),
    ) -> None:
        self.expected = expected
        self.actual = actual
        self.expectation = expectation
        self.step = step
        self.number = number
        self.kinds = kinds or ((expectation,) if expectation else ())
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
            kinds=self.kinds,
        )

    def with_sequence(self, sequence: str, saved: str) -> "Unmet":
        """Add the generated sequence of steps that shows the failure, and the file that it is saved in."""
        self.sequence, self.saved = sequence, saved
        return self


class Inapplicable(Exception):  # noqa: N818 - it is a finding about the target, not an error
    """The check does not apply to this target: the target does not have what the check tests. The argument is the reason."""


class Untested(Exception):  # noqa: N818 - it is a finding about the set-up, not an error
    """The scenario cannot be tested here, so it neither passes nor fails. The argument is the reason."""

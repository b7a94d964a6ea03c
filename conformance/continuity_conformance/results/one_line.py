"""One line for a result that did not pass: for the summary, pytest's short summary, and junit.xml."""

from continuity_conformance.core.verdicts import Result


def headline(result: Result) -> str:
    """The first expectation that was not met, or else the reason."""
    failed = next((each for each in result.evidence if each.outcome is result.verdict and each.expectation), None)
    if failed is None:
        return _line(result.reason or result.text)
    return f"{failed.expectation}: expected {_line(failed.expected)}, actual {_line(failed.actual)}"


def _line(text: str) -> str:
    return " ".join(text.split())

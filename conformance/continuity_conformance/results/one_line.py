"""A result that is no pass, in one line: for the summary, the short test summary and junit."""

from continuity_conformance.core.verdicts import Result


def headline(result: Result) -> str:
    failed = next((each for each in result.evidence if each.outcome is result.verdict and each.expectation), None)
    if failed is None:
        return _line(result.reason or result.text)
    return f"{failed.expectation}: expected {_line(failed.expected)}, actual {_line(failed.actual)}"


def _line(text: str) -> str:
    return " ".join(text.split())

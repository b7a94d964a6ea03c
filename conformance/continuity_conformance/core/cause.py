"""A cause: one fault that explains a group of failures."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShownFailure:
    """One failed expectation that shows a cause."""

    id: str
    scenario: str
    step: str
    expectation: str
    expected: str
    actual: str


@dataclass(frozen=True, slots=True)
class Cause:
    """One fault. `defect` is the known defect that it matches best; None if it matches none, and is described by its own evidence."""

    title: str
    defect: str | None
    confidence: str
    """How well the run fits the defect: "high", "medium" or "low"; "unknown" without a defect."""
    explains: tuple[str, ...]
    """The requirements that fail because of it."""
    blocks: tuple[str, ...] = ()
    """The requirements that could not be tested because of it."""
    contrary: tuple[str, ...] = ()
    """The requirements that fail with the defect on the bundled server, and pass here."""
    alternatives: tuple[str, ...] = ()
    """Other defects that fit almost as well."""
    besides: tuple[str, ...] = ()
    """Where the same requirements fail too, although the defect does not: another fault may be there. Each is a requirement and a scenario."""
    evidence: tuple[ShownFailure, ...] = ()
    issue: str | None = None
    """Where the same fault was seen."""

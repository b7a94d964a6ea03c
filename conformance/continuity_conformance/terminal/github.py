"""GitHub Actions: failures as annotations, long lists folded, report.md as the summary of the step.

The runner executes commands that it finds in the log. Text of a server is data: it is escaped in our commands, and cannot become one.
"""

import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from continuity_conformance.core.errors import ContinuityError
from continuity_conformance.core.verdicts import Result
from continuity_conformance.report import markdown
from continuity_conformance.results import write as results
from continuity_conformance.results.ledger import RunOutcome
from continuity_conformance.results.one_line import headline
from continuity_conformance.results.read import read
from continuity_conformance.terminal import summary

_AT_MOST: Final = 10
"""GitHub shows at most this many annotations of each kind for a step."""
_FOLDED: Final = frozenset({"not tested", "not applicable"})
_SUMMARY: Final = "GITHUB_STEP_SUMMARY"


def is_here(environ: Mapping[str, str] = os.environ) -> bool:
    return environ.get("GITHUB_ACTIONS") == "true"


class Fence:
    """Between `begin` and `end` the runner executes no command."""

    def __init__(self) -> None:
        self._token = secrets.token_hex(16)

    def begin(self) -> str:
        return f"::stop-commands::{self._token}"

    def end(self) -> str:
        return f"::{self._token}::"


def lines(outcome: RunOutcome, report: Path | None) -> Iterator[str]:
    """The summary with its long lists folded, and the annotations."""
    yield from (_inert(line) for line in summary.lines(outcome, report, without=_FOLDED))
    for each in summary.sections(outcome):
        if each.title in _FOLDED and each.size:
            yield from (f"::group::{each.title}: {each.size}", *(_inert(line) for line in each.lines), "::endgroup::")
    yield from annotations(outcome)


def annotations(outcome: RunOutcome) -> Iterator[str]:
    gate = outcome.gate
    annotated = [_annotation("error", _title(each), headline(each)) for each in gate.failed]
    for entry in gate.stale:
        place = (entry.place.file, entry.place.line)
        annotated.append(_annotation("error", f"stale: {entry.id}", "It passes again. Remove the entry.", place))
    for entry in gate.expired:
        place = (entry.place.file, entry.place.line)
        annotated.append(_annotation("error", f"expired: {entry.id}", f"It was accepted until {entry.until}.", place))
    if not gate.passed and not annotated:
        annotated.append(error_annotation("; ".join(gate.reasons)))
    yield from _first(annotated, "error")
    yield from _first([_annotation("warning", _title(each), headline(each)) for each in gate.warned], "warning")
    known = [
        _annotation("notice", f"known: {result.id}", f"{entry.reason} (until {entry.until})")
        for result, entry in (*gate.known, *gate.gaps)
    ]
    yield from _first(known, "notice")


def error_annotation(message: str) -> str:
    """The annotation of an error that is not about a single requirement."""
    return _annotation("error", "session continuity", message)


def write_summary(outcome: RunOutcome, environ: Mapping[str, str] = os.environ) -> None:
    """Put report.md on the page of the run. If that fails, the verdict stays."""
    path = environ.get(_SUMMARY)
    if path:
        with suppress(OSError, ContinuityError), Path(path).open("a", encoding="utf-8") as page:
            page.write(f"{_markdown(outcome)}\n")


def _markdown(outcome: RunOutcome) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return markdown.render(read(results.write(outcome, Path(folder))))


def _title(result: Result) -> str:
    return f"{result.id} ({result.level})"


def _first(lines: Sequence[str], kind: str) -> list[str]:
    if len(lines) <= _AT_MOST:
        return list(lines)
    more = len(lines) - _AT_MOST + 1
    return [*lines[: _AT_MOST - 1], _annotation(kind, "session continuity", f"and {more} more; see the report")]


def _annotation(kind: str, title: str, message: str, place: tuple[str, int] | None = None) -> str:
    where = f"file={_property(place[0])},line={place[1]}," if place else ""
    return f"::{kind} {where}title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _inert(line: str) -> str:
    """Make a line harmless: the runner looks for `::` at its start, also after blanks, and for `##[` anywhere."""
    start = len(line) - len(line.lstrip())
    if line[start:].startswith("::"):
        line = f"{line[:start]}: :{line[start + 2 :]}"
    return line.replace("##[", "## [")

"""The suite as pytest nodes: a file for each area, an item for each requirement.

Node ids are `derive.yaml::DERIVE-01` wherever the package is installed. An item waits for its result in `setup` and reports it in `runtest`. It does not
know how results are decided.
"""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pytest
from _pytest._code.code import ReprFileLocation, TerminalRepr
from _pytest._io import TerminalWriter

from continuity_conformance.checks.registry import CONCLUDING, disturbs
from continuity_conformance.core.verdicts import Result, Verdict
from continuity_conformance.results.one_line import headline
from continuity_conformance.suite.select import file_of, node_id
from continuity_spec import Requirement
from continuity_spec.load.loader import BUNDLED

_NAMED: Final = 5
Decide = Callable[[Requirement], Result]


class NotPassed(Exception):  # noqa: N818 # a verdict about the target, not an error of the kit
    """Carries the result of a requirement that failed, or that could not be decided because of an error."""

    def __init__(self, result: Result) -> None:
        super().__init__(headline(result))
        self.result = result


class ResultText(TerminalRepr):
    """The text of a result. The short summary, --tb=line and junit show its `reprcrash`."""

    def __init__(self, result: Result, place: str, line: int) -> None:
        self.text = _text(result)
        self.reprcrash = ReprFileLocation(place, line, headline(result))

    def toterminal(self, tw: TerminalWriter) -> None:
        for line in self.text.splitlines():
            tw.line(line)


def _text(result: Result) -> str:
    """One failure in full, and the names of some others: fifty examples that fail in the same way have one cause."""
    failed = [each for each in result.evidence if each.failure]
    if not failed:
        return result.failure or f"{result.id} ({result.level}) {result.verdict.spoken}: {result.reason}"
    if not failed[1:]:
        return failed[0].failure
    names = [" ".join(part for part in (each.scenario, each.example) if part) for each in failed[1:]]
    shown = "; ".join([*names[:_NAMED], *(["…"] if names[_NAMED:] else [])])
    more = textwrap.fill(f"{len(names)} more failed: {shown}", 100, initial_indent="  ", subsequent_indent="    ")
    return f"{failed[0].failure.rstrip()}\n{more}"


class Suite(pytest.Directory):
    """The installed suite. It collects the files of the spec, not those of its folder."""

    def __init__(self, requirements: Sequence[Requirement], decide: Decide, **kw: Any) -> None:  # pytest's
        super().__init__(**kw)
        self._requirements = requirements
        self._decide = decide

    def collect(self) -> Iterator[pytest.Collector]:
        for (_, name), group in groupby(self._requirements, key=lambda each: (each.pack, file_of(each))):
            members = tuple(group)
            path = BUNDLED / members[0].place.file
            yield RequirementFile.from_parent(
                self, path=path, name=name, nodeid=name, requirements=members, decide=self._decide
            )


class RequirementFile(pytest.File):
    def __init__(self, requirements: Sequence[Requirement], decide: Decide, **kw: Any) -> None:  # pytest's
        super().__init__(**kw)
        self._requirements = requirements
        self._decide = decide

    def collect(self) -> Iterator[pytest.Item]:
        for each in self._requirements:
            yield RequirementItem.from_parent(
                self, name=each.id, nodeid=node_id(each), requirement=each, decide=self._decide
            )


class RequirementItem(pytest.Item):
    """One requirement. `setup` sets `result`."""

    def __init__(self, requirement: Requirement, decide: Decide, **kw: Any) -> None:  # pytest's
        super().__init__(**kw)
        self.requirement = requirement
        self.result: Result | None = None
        self._decide = decide
        self.user_properties += [
            ("requirement", requirement.id),
            ("level", requirement.level.value),
            ("area", requirement.area),
        ]
        if self.config.pluginmanager.hasplugin("timeout"):
            # pytest-timeout would count the time of waiting for other scenarios; the kit limits each turn itself.
            self.add_marker(pytest.mark.timeout(0))

    @property
    def place(self) -> tuple[str, int]:
        """The file and line of the requirement, short enough for a terminal."""
        return file_of(self.requirement), self.requirement.place.line

    @property
    def place_in_run(self) -> int:
        """The order of decisions: calm scenarios, disturbing ones, what is judged on every answer of the run, what is concluded from results."""
        if self.requirement.check in CONCLUDING:
            return 3
        if self.requirement.always is not None:
            return 2
        return int(disturbs(self.requirement))

    def setup(self) -> None:
        self.result = self._decide(self.requirement)
        if self.result.verdict is Verdict.ERROR:
            raise NotPassed(self.result)

    def runtest(self) -> None:
        assert self.result is not None
        if self.result.verdict is Verdict.FAIL:
            raise NotPassed(self.result)
        if self.result.verdict is not Verdict.PASS:
            pytest.skip(self.result.reason or self.result.verdict.spoken)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:  # pytest's
        if isinstance(excinfo.value, NotPassed):
            return ResultText(excinfo.value.result, *self.place)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.requirement.place.line - 1, self.name

"""What a person sees: progress while it runs, then a verdict that fits on the screen, in 80 columns and without colour."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from processes import CONTINUITY, serving

from continuity_conformance.core.run_options import RunOptions
from continuity_conformance.core.verdicts import Evidence, Result, Verdict
from continuity_conformance.core.work import Count, Work
from continuity_conformance.results.baseline import Baseline, KnownFailure
from continuity_conformance.results.ledger import Ledger
from continuity_conformance.run.player import Group, PlayLog, ScenarioPlay
from continuity_conformance.suite.release import newest
from continuity_conformance.terminal import github, summary
from continuity_conformance.terminal.progress import ProgressDisplay
from continuity_spec import Place, Requirement

RELEASE = newest()
HOSTILE = "::add-mask::e\n::error::owned ##[error]owned\n%0A::warning::x"


def on_a_terminal(*arguments: str, rows: int, columns: int, environ: dict[str, str]) -> tuple[str, int]:
    """Run the command on a terminal of this size; give all that was written to it, and the exit code."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    kept = {name: value for name, value in environ.items() if name not in {"COLUMNS", "LINES"}}
    with subprocess.Popen([CONTINUITY, *arguments], stdout=theirs, stderr=theirs, env=kept) as running:
        os.close(theirs)
        said = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    return said.decode(), running.returncode


def _read(terminal: int) -> bytes:
    select.select([terminal], [], [], 120)
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux tells so that the other side is closed
        return b""


def screen(said: str) -> list[str]:
    """The lines as they stand in the end: what was written over is gone."""
    return [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in said.split("\n")]


def decided(requirement: Requirement, verdict: Verdict, actual: str = "two") -> Result:
    evidence = Evidence("", "", verdict, "", "step 1", "session", "one", actual, "text")
    reason = "" if verdict is Verdict.PASS else "for a reason"
    return Result(
        requirement.id, requirement.area, requirement.level, requirement.text, verdict, 0.5, reason, "", (evidence,)
    )


def outcome(verdict: Verdict, actual: str = "two", *, known: bool = False):
    """A run in which everything has this verdict."""
    entries = {
        each.id: KnownFailure(each.id, "r", date(2999, 1, 1), None, Place("known.yaml", 1, 1))
        for each in RELEASE.requirements
    }
    made = Ledger(RunOptions("http://127.0.0.1:1"), RELEASE, Baseline("known.yaml", entries) if known else None)
    for requirement in RELEASE.requirements:
        made.add(decided(requirement, verdict, actual))
    return made.close()


def test_on_a_terminal_progress_is_one_line_that_is_written_over(url, surroundings):
    said, code = on_a_terminal("check", url, "--area", "DERIVE,SLUG", rows=60, columns=80, environ=surroundings)
    counted = f" of {sum(each.area in {'DERIVE', 'SLUG'} for each in RELEASE.requirements)} · "
    over = [part for line in said.split("\n") for part in line.split("\r") if counted in part]

    assert code == 5
    assert over
    assert all(len(part.rstrip()) < 80 for part in over)
    assert re.search(r"open: .*(DERIVE|SLUG)", "".join(over))
    assert not any(counted in line for line in screen(said))
    assert "\x1b" not in said


def test_the_verdict_fits_on_a_small_screen(surroundings):
    """A server that fails more than there is room for on 24 lines."""
    with serving("--defect", "slugs-share-a-session") as url:
        said, code = on_a_terminal(
            "check", url, "--area", "DERIVE,HISTORY,SLUG", rows=24, columns=80, environ=surroundings
        )
    lines = screen(said)
    title = next(number for number, line in enumerate(lines) if " session continuity " in line)

    assert code == 1
    assert len(lines[title:]) <= 24
    assert lines[title + 1].startswith("verdict: NOT conformant")
    assert any(re.match(r" +1\. ", line) for line in lines[title:])
    assert any(re.match(r"failed: [1-9]\d* \([A-Z]+-\d\d; [A-Z]+-\d\d", line) for line in lines[title:])
    assert max(len(line) for line in lines) <= 80


def test_without_a_terminal_progress_is_plain_lines(continuity, url):
    done = continuity("check", url, "--area", "DERIVE,ENV")
    before = done.stdout.partition("====")[0].splitlines()

    assert "\r" not in done.stdout
    assert {line.split()[0] for line in before if not line[0].isdigit()} == {"DERIVE", "ENV"}
    assert any(re.fullmatch(r"DERIVE +16 +\d+ passed, .*", line) for line in before)


@pytest.mark.parametrize("height", [24, 30, 40, 60])
@pytest.mark.parametrize("verdict", list(Verdict))
def test_the_summary_fits_into_any_height(verdict: Verdict, height: int):
    told = summary.lines(outcome(verdict), Path("report/report.html"), height)

    assert len(told) <= height
    assert told[0].startswith("verdict: ")
    assert any("total " in line for line in told)
    assert told[-1] == "report:  report/report.html"
    assert max(map(len, told)) <= 80


def test_failures_that_do_not_fit_are_counted():
    told = summary.lines(replace(outcome(Verdict.FAIL), causes=()), None, 30)
    shown = [line for line in told if re.match(r"  [A-Z]+-\d\d ", line)]
    more = next(line for line in told if line.startswith("  … and "))

    assert len(shown) + int(more.split()[2]) == len(outcome(Verdict.FAIL).gate.failed)


def test_a_list_without_room_still_tells_the_most_frequent_reasons():
    untested = [each for each in RELEASE.requirements if each.manual is None]
    made = Ledger(RunOptions("http://127.0.0.1:1"), RELEASE)
    for number, requirement in enumerate(untested):
        reason = "no control to evict" if number % 3 else f"a rare reason {number}"
        made.add(replace(decided(requirement, Verdict.FAIL if number < 9 else Verdict.NOT_TESTED), reason=reason))
    (line,) = (line for line in summary.lines(made.close(), None, 24) if line.startswith("not tested: "))

    assert re.match(r"not tested: 1\d\d \(\d\d\d? no control to evict; .*; …\)$", line)
    assert len(line) <= 80


def test_a_reason_that_is_longer_than_the_line_is_cut():
    made = Ledger(RunOptions("http://127.0.0.1:1"), RELEASE)
    for number, requirement in enumerate(RELEASE.requirements):
        verdict = Verdict.FAIL if number < 9 else Verdict.NOT_TESTED
        made.add(replace(decided(requirement, verdict), reason="the target " + "very " * 20 + "long"))
    (line,) = (line for line in summary.lines(made.close(), None, 24) if line.startswith("not tested: "))

    assert re.match(r"not tested: \d+ \(\d+ the target very .*…\)$", line)
    assert len(line) == 80


def test_on_a_small_screen_each_cause_has_a_line_and_failures_have_their_ids():
    texts = {"HISTORY-02": "sees", "ECHO-02": "session", "SLUG-02": "status", "ERROR-06": "body", "DERIVE-02": "id"}
    made = Ledger(RunOptions("http://127.0.0.1:1"), RELEASE)
    for requirement in RELEASE.requirements:
        verdict = Verdict.FAIL if requirement.id in texts else Verdict.NOT_TESTED
        made.add(replace(decided(requirement, verdict, texts.get(requirement.id, "")), reason="no control to evict"))
    ended = made.close()
    told = summary.lines(ended, Path("report/report.html"), 26)
    shown = [line for line in told if re.match(r" +\d\. ", line)]

    assert [re.search(r"[A-Z]+-\d\d", line)[0] for line in shown] == [each.explains[0] for each in ended.causes]
    assert len(shown) == len(texts)
    assert any(re.match(r"failed: \d \([A-Z]+-\d\d(; |\))", line) for line in told)
    assert len(told) <= 26


def test_what_a_server_said_is_no_command_of_github():
    lines = list(github.lines(outcome(Verdict.FAIL, HOSTILE), None))
    ours = re.compile(r"::(error|warning|notice|group|endgroup)(::| title=)")

    assert [line for line in lines if line.lstrip().startswith("::") and not ours.match(line)] == []
    assert not any("\n" in line or "##[" in line.partition("::error")[0] for line in lines)


def test_annotations_are_as_many_as_github_shows():
    lines = list(github.annotations(outcome(Verdict.FAIL)))

    assert sum(line.startswith("::error ") for line in lines) == 10
    assert any("more; see the report" in line for line in lines)


def test_known_failures_are_notices():
    lines = list(github.annotations(outcome(Verdict.FAIL, known=True)))

    assert {line.split(" ")[0] for line in lines} == {"::notice", "::error"}
    assert len([line for line in lines if line.startswith("::error")]) == 1


def test_time_left_is_told_once_something_is_known():
    log, progress, now = PlayLog(), ProgressDisplay(), time.monotonic()
    progress.start(RELEASE.requirements, log)
    before = progress._time_left(now + 30.0)
    log.add(ScenarioPlay("HISTORY-01", Group.CALM, Work(turns=Count(4, 4.0), began=now), now + 4.0))
    log.add(ScenarioPlay("HISTORY-01", Group.CALM))

    assert before == ""
    assert progress._time_left(now + 1.0) == ""
    assert re.fullmatch(r"about \d+ (s|min) left", progress._time_left(now + 30.0))

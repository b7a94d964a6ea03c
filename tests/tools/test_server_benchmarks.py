"""The benchmarks run, with tiny sizes, and their page is that of the stored figures. Nothing here measures time."""

import subprocess
import sys
from pathlib import Path

import pytest

import figures
import load
import scaling
import suite_speed
import turns
from benchmark_page import pages
from continuity_spec import load_spec
from goals import GOALS
from servers import ROOT

BENCHMARKS = ROOT / "tools" / "benchmarks"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> figures.Figures:
    """Everything that is measured, in one round of few turns, as it is stored and read again."""
    folder = tmp_path_factory.mktemp("benchmarks")
    (folder / "scaling").mkdir()
    found = figures.Figures(
        {"cores": 1},
        list(turns.measure(folder, turns.Plan(rounds=1, seconds=0.2, clients=(1, 4)))),
        list(scaling.measure(folder / "scaling", scaling.Plan(rounds=1, turns=5, largest=1000))),
        list(suite_speed.measure(1, [load_spec().requirement("HISTORY-01"), load_spec().requirement("DURABLE-01")])),
    )
    figures.write(found, folder / "figures.json")
    return figures.read(folder / "figures.json")


def test_every_server_is_measured_in_every_case(tiny):
    cases = {(one.kind, one.clients, one.server) for one in tiny.turns}

    assert cases == {(kind, clients, server) for kind in turns.KINDS for clients in (1, 4) for server in turns.SERVERS}
    assert all(one.rate > 0 and 0 < one.p50 <= one.p99 and one.cpu > 0 for one in tiny.turns)


def test_every_size_is_measured(tiny):
    found = {(one.what, one.size) for one in tiny.scaling}

    assert found == {(question.what, size) for question in scaling.QUESTIONS for size in question.sizes if size <= 1000}
    assert all(one.cpu > 0 and one.p50 > 0 and one.memory > 0 for one in tiny.scaling)


def test_every_run_of_the_suite_is_measured(tiny):
    assert [one.what for one in tiny.suite] == [*suite_speed.RUNS, "replay", "slow", "slow at least"]
    assert all(one.seconds > 0 for one in tiny.suite)
    assert tiny.of_suite("replay", "requests")[0] > 40


def test_a_ratio_is_computed_round_by_round():
    assert figures.ratio([1, 20, 3], [2, 10, 3]) == figures.Spread(median=1, least=0.5, most=2)


def test_a_round_without_any_answer_is_left_out_of_a_ratio():
    assert figures.ratio([1, 20, 3], [2, 0, 3]) == figures.Spread(median=0.75, least=0.5, most=1)


def test_rounds_that_are_all_without_an_answer_say_what_to_do():
    with pytest.raises(figures.NothingMeasuredError, match="measure longer"):
        figures.ratio([1], [0])


def test_a_window_without_any_answer_ends_the_program_in_one_line():
    said = r"^[\w.-]+: No answer came in the 0.5 s .*measure longer \(--seconds\)\.$"
    with pytest.raises(SystemExit, match=said), figures.failing_in_one_line():
        load.Load(0, 0.5, []).slowest_of(0.5)


def test_an_answer_is_whole_when_its_last_byte_is_there():
    plain = bytearray(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    stream = bytearray(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")

    assert [load.is_whole(plain), load.is_whole(plain[:-1])] == [True, False]
    assert [load.is_whole(stream), load.is_whole(stream[:-5])] == [True, False]


def test_an_answer_that_is_no_success_ends_the_measurement():
    with pytest.raises(load.LoadFailedError, match="503"):
        load.is_whole(bytearray(b"HTTP/1.1 503 Service Unavailable\r\n\r\n"))


def test_the_page_is_that_of_the_stored_figures():
    """`python tools/benchmarks/benchmark_page.py` writes it anew."""
    for file, text in pages(figures.read()).items():
        assert file.read_text(encoding="utf-8") == text


def test_every_goal_has_a_figure():
    stored = figures.read()

    missing = [goal.words for goal in GOALS if not goal.figure(stored)]
    assert missing == (
        [] if stored.suite else [goal.words for goal in GOALS if "suite" in goal.words or "Core" in goal.words]
    )


def test_a_commit_is_compared_with_itself():
    command = [sys.executable, str(BENCHMARKS / "compare.py"), "HEAD", "--rounds", "1", "--seconds", "0.3"]
    told = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout

    assert told.count("times the turns a second") == len(turns.KINDS) * len(turns.CLIENTS)


def test_the_folder_of_the_benchmarks_is_small():
    assert len(list(Path(BENCHMARKS).glob("*.py"))) <= 18

"""docs/reference/benchmarks.md and its pictures, made from the stored figures alone.

python tools/benchmarks/benchmark_page.py
"""

from pathlib import Path
from typing import Final

from figures import FILE, Figures, Spread, read
from goals import GOALS
from scaling import QUESTIONS
from svg_chart import chart
from turns import KINDS, SERVERS

PAGE: Final = FILE.with_suffix(".md")
WORDS: Final = Path(__file__).with_name("benchmarks.md.txt")
TURNS_PICTURE: Final = FILE.with_name("benchmarks-turns.svg")
COST_PICTURE: Final = FILE.with_name("benchmarks-cost.svg")
_SUITE_WORDS: Final = {
    "complete": "`continuity check`",
    "Core": "`continuity check --class Core`",
    "start-up": "`continuity check -k DISCOVER-01`: the start-up",
    "replay": "bare replay of all requests",
    "slow": "all requirements, 300 ms a turn",
    "slow at least": "longest chain of requests, and disturbing scenarios, of that run",
}
_NAMES: Final = {"reference": "reference server", "bare": "bare handler", "insert": "handler with an insert"}


def pages(figures: Figures) -> dict[Path, str]:
    """Every file that is made from the figures."""
    return {PAGE: _page(figures), TURNS_PICTURE: _turns_picture(figures), COST_PICTURE: _cost_picture(figures)}


def _page(figures: Figures) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in figures.machine.items())
    tables = {
        "{machine}": machine,
        "{goals}": _goals(figures),
        "{turns}": _turns(figures),
        "{latencies}": _latencies(figures),
        "{scaling}": _scaling(figures),
        "{suite}": _suite(figures),
    }
    text = WORDS.read_text(encoding="utf-8")
    for mark, table in tables.items():
        text = text.replace(mark, table)
    return text


def _table(head: str, rows: list[list[str]]) -> str:
    columns = head.split("|")
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cell.strip() for cell in line)} |" for line in lines)


def _goals(figures: Figures) -> str:
    rows = [
        [
            goal.words,
            f"at {'least' if goal.at_least else 'most'} {goal.bound:g}",
            f"{figure:.2f}" if (figure := goal.figure(figures)) is not None else "not yet",
            "yes" if goal.is_met(figures) else "**no**",
        ]
        for goal in GOALS
    ]
    return _table("what | goal | measured | met", rows)


def _turns(figures: Figures) -> str:
    rows = [
        [
            kind,
            str(clients),
            f"{Spread.of(figures.of_turns(kind, clients, 'reference', 'rate')).median:,.0f}",
            _spread(figures.rate_ratio(kind, clients, "bare")),
            _spread(figures.rate_ratio(kind, clients, "insert")),
        ]
        for kind in KINDS
        for clients in figures.clients()
    ]
    return _table("answer | clients | turns a second | of the bare handler | of the handler with an insert", rows)


def _latencies(figures: Figures) -> str:
    rows = [
        [kind, str(clients), *(_latency(figures, kind, clients, server) for server in SERVERS)]
        for kind in KINDS
        for clients in figures.clients()
    ]
    return _table(f"answer | clients | {' | '.join(_NAMES[server] for server in SERVERS)}", rows)


def _latency(figures: Figures, kind: str, clients: int, server: str) -> str:
    p50, p99 = (Spread.of(figures.of_turns(kind, clients, server, what)).median for what in ("p50", "p99"))
    return f"{p50:.1f} / {p99:.1f} ms"


def _scaling(figures: Figures) -> str:
    rows = [
        [
            question.what,
            f"{size:,}",
            f"{Spread.of(figures.of_scaling(question.what, size, 'cpu')).median / 1000:.2f} ms",
            _spread(figures.cost_ratio(question.what, size, figures.sizes(question.what)[0])),
            f"{Spread.of(figures.of_scaling(question.what, size, 'memory')).median / 1e6:.0f} MB",
        ]
        for question in QUESTIONS
        for size in figures.sizes(question.what)
    ]
    return _table("what | how many | cost of a turn | of that of the fewest | memory", rows)


def _suite(figures: Figures) -> str:
    if not figures.suite:
        return 'Not measured yet: `make bench BENCH="--only suite"`.'
    rows = [
        [words, f"{_spread(Spread.of(figures.of_suite(what)))} s", _requests(figures, what)]
        for what, words in _SUITE_WORDS.items()
    ]
    return _table("what | time | requests", rows)


def _requests(figures: Figures, what: str) -> str:
    requests = Spread.of(figures.of_suite(what, "requests")).median
    return f"{requests:,.0f}" if requests else ""


def _spread(spread: Spread) -> str:
    return f"{spread.median:.2f} ({spread.least:.2f} to {spread.most:.2f})"


def _turns_picture(figures: Figures) -> str:
    lines = {
        _NAMES[server]: [
            (clients, Spread.of(figures.of_turns("plain", clients, server, "rate")).median)
            for clients in figures.clients()
        ]
        for server in SERVERS
    }
    return chart("Plain turns a second", "clients", "turns a second", lines)


def _cost_picture(figures: Figures) -> str:
    lines = {
        question.what: [
            (size, Spread.of(figures.of_scaling(question.what, size, "cpu")).median)
            for size in figures.sizes(question.what)
        ]
        for question in QUESTIONS
    }
    return chart("What a turn costs when much is stored", "how many", "microseconds of a core", lines)


def write_pages(figures: Figures) -> None:
    for file, text in pages(figures).items():
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_pages(read())

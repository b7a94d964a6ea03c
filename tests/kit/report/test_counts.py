"""Every number in every format comes from the same results, and agrees."""

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from recorded import VERDICTS, continuity, load

HEADS = {
    "passed": "pass",
    "failed": "fail",
    "not tested": "not_tested",
    "not applicable": "not_applicable",
    "error": "error",
}
Table = dict[str, dict[str, int]]


@pytest.fixture(params=["good", "failing", "nasty", "large"])
def folder(request) -> Path:
    return request.getfixturevalue(request.param)


def expected(folder: Path) -> Table:
    """Counted here, from the requirements, by other means than the kit's."""
    rows = load(folder)["requirements"]
    groups = {area: [row["verdict"] for row in rows if row["area"] == area] for area in {row["area"] for row in rows}}
    groups["total"] = [row["verdict"] for row in rows]
    return {name: {each: Counter(verdicts)[each] for each in VERDICTS} for name, verdicts in groups.items()}


def played(folder: Path) -> Table:
    """The areas of which something was selected, and the total."""
    areas = {row["area"] for row in load(folder)["requirements"] if row["reason"] != "not selected"}
    return {name: row for name, row in expected(folder).items() if name in areas | {"total"}}


def filled(table: Table) -> Table:
    """A column that is not shown is all zeros."""
    return {name: {each: row.get(each, 0) for each in VERDICTS} for name, row in table.items()}


class Tables(HTMLParser):
    """The cells of the first table of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._inside = self._cell = False

    def handle_starttag(self, tag, _):
        self._inside |= tag == "table" and not self.rows
        self._cell = self._inside and tag in {"th", "td"}
        self.rows += [[]] if self._inside and tag == "tr" else []

    def handle_endtag(self, tag):
        self._inside &= tag != "table"
        self._cell &= tag not in {"th", "td"}

    def handle_data(self, data):
        if self._cell:
            self.rows[-1].append(data)


def as_table(rows: list[list[str]]) -> Table:
    verdicts = [HEADS[head] for head in rows[0][1:]]
    return {row[0]: dict(zip(verdicts, map(int, row[1:]), strict=True)) for row in rows[1:]}


def test_results_json_adds_up(folder):
    assert load(folder)["counts"] == expected(folder)["total"]


def test_report_html_agrees(folder):
    tables = Tables()
    tables.feed((folder / "report.html").read_text(encoding="utf-8"))

    assert filled(as_table(tables.rows)) == expected(folder)


def test_report_html_has_a_row_for_each_requirement_with_its_verdict(folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    rows = re.findall(r'<details class="row \w+" id="([A-Z]+-\d\d)" .*?data-verdict="(\w+)"', page)

    assert rows == [(each["id"], each["verdict"]) for each in load(folder)["requirements"]]


def test_report_md_agrees(folder):
    lines = (folder / "report.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    head = next(row for row in rows if "passed" in row)
    numbers = [head, *(row for row in rows if len(row) == len(head) and row[1].isdigit())]

    assert filled(as_table(numbers)) == played(folder)


def test_junit_xml_agrees(folder):
    cases = ET.parse(folder / "junit.xml").getroot().iter("testcase")
    found = [{each.get("name"): each.get("value") for each in case.iter("property")} for case in cases]

    assert [(each["requirement"], each["verdict"], each["level"]) for each in found] == [
        (each["id"], each["verdict"], each["level"]) for each in load(folder)["requirements"]
    ]


def test_the_sums_of_junit_xml_are_those_of_its_cases(folder):
    root = ET.parse(folder / "junit.xml").getroot()

    for element in (root, *root.iter("testsuite")):
        cases = list(element.iter("testcase"))
        assert int(element.get("tests")) == len(cases)
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(element.get(name)) == len([case for case in cases if case.find(tag) is not None])


def test_the_badge_agrees(folder):
    badge = json.loads((folder / "badge.json").read_text())
    passed = re.search(r"(\d+) passed", badge["message"])
    total = expected(folder)["total"]

    assert int(passed[1]) == total["pass"]
    assert (f"{total['fail']} failed" in badge["message"]) == (total["fail"] > 0)
    assert badge["message"] in (folder / "badge.svg").read_text()


def test_the_checklist_ticks_what_passed(folder):
    lines = (folder / "checklist.md").read_text(encoding="utf-8").splitlines()
    boxes = {match[2]: match[1] for line in lines if (match := re.match(r"- \[(.)\] \*\*([A-Z]+-\d\d)\*\*", line))}

    assert boxes == {each["id"]: "x" if each["verdict"] == "pass" else " " for each in load(folder)["requirements"]}


def test_reproduce_sh_names_what_failed(folder):
    script = (folder / "reproduce.sh").read_text(encoding="utf-8")
    named = re.findall(r"^continuity run ([A-Z]+-\d\d) ", script, re.MULTILINE)

    assert named == [each["id"] for each in load(folder)["requirements"] if each["verdict"] == "fail"]


def test_a_comparison_agrees(folder):
    done = continuity("compare", "results.json", "results.json", cwd=folder)
    told = re.findall(r"(\d+) ([a-z ]+)", done.stdout.splitlines()[1])

    assert {HEADS[head]: int(number) for number, head in told} == expected(folder)["total"]


@pytest.mark.parametrize("run", ["good", "failing", "nasty"])
def test_the_terminal_agrees(run, request):
    folder = request.getfixturevalue(run)
    lines = (folder / "terminal.txt").read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if re.match(r"\s+passed\s+failed", line))
    heads = [HEADS[head] for head in re.split(r"\s{2,}", lines[start].strip())]
    rows = [line.split() for line in lines[start + 1 : start + 1 + len(played(folder))]]

    assert filled({row[0]: dict(zip(heads, map(int, row[1:]), strict=True)) for row in rows}) == played(folder)


def test_the_verdict_is_the_same_everywhere(folder):
    verdict = load(folder)["verdict"].replace("_", " ").lower()

    assert verdict in (folder / "report.md").read_text().splitlines()[0].lower()
    assert verdict in json.loads((folder / "badge.json").read_text())["message"]
    assert f"<h1>{verdict}" in (folder / "report.html").read_text().lower()

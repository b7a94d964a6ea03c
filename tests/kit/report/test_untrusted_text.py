"""Whatever a server says is text in every format: it runs nothing, marks nothing up, closes nothing, moves no cursor."""

import re
import subprocess
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest
from recorded import continuity, load, save

from continuity_conformance.report.files import FILES
from continuity_conformance.report.markdown import code, plain

ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufffe]")


class Elements(HTMLParser):
    """All start tags of a page, with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def elements(page: str) -> list[tuple[str, dict[str, str | None]]]:
    return Elements(page).tags


@pytest.mark.parametrize("name", [*FILES, "terminal.txt"])
def test_no_character_acts_on_a_reader(nasty: Path, name: str):
    found = ACTING.findall((nasty / name).read_text(encoding="utf-8"))

    assert found == []


@pytest.mark.parametrize("name", ["report.html", "report.md", "junit.xml"])
def test_what_was_said_is_still_told(nasty: Path, name: str):
    assert "window.pwned" in (nasty / name).read_text(encoding="utf-8")


def test_the_page_has_no_element_of_the_server(nasty: Path):
    found = elements((nasty / "report.html").read_text(encoding="utf-8"))

    assert [tag for tag, _ in found if tag in {"img", "svg", "iframe", "object", "embed", "base"}] == []
    assert len([tag for tag, _ in found if tag == "script"]) == 1


def test_the_page_has_no_handler_and_no_address_of_the_server(nasty: Path):
    found = elements((nasty / "report.html").read_text(encoding="utf-8"))
    names = {name for _, attributes in found for name in attributes}
    addresses = [value for _, attributes in found for name, value in attributes.items() if name in {"href", "src"}]

    assert not [name for name in names if name.startswith("on") or name == "style"]
    assert [address for address in addresses if not re.fullmatch(r"#[A-Z]+-\d\d|data:,", address)] == []


def test_xml_is_well_formed_and_has_our_elements_only(nasty: Path):
    found = {element.tag for element in ET.parse(nasty / "junit.xml").getroot().iter()}

    assert found <= {"testsuites", "testsuite", "testcase", "properties", "property", "failure", "error", "skipped"}


@pytest.mark.parametrize("name", ["report.md", "checklist.md"])
def test_markdown_has_no_tag_link_or_mention_outside_of_code(nasty: Path, name: str):
    text = (nasty / name).read_text(encoding="utf-8")
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    tags = set(re.findall(r"(?<!\\)<[^>]*>", outside))

    assert tags <= {"<details>", "</details>", "<summary>", "</summary>", "<br>"}
    assert re.findall(r"(?<!\\)\]\(|(?<!\\)!\[|@\w|https?://", outside) == []


def test_each_row_of_a_markdown_table_is_one_line_with_all_its_cells(nasty: Path):
    lines = (nasty / "report.md").read_text(encoding="utf-8").splitlines()
    start = lines.index("|  | requirement | what is wrong |")
    rows = [line for line in lines[start + 2 :] if line.startswith("|")]

    assert rows
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {4}


@pytest.mark.parametrize("text", ["a | b", "`", "``a```", "`a", "\n- [x] b", "", "a`|`b"])
def test_code_cannot_be_closed_from_inside(text: str):
    made = code(text)
    fence = re.match(r"`+", made)[0]

    assert made.endswith(fence)
    assert fence not in re.findall(r"`+", made[len(fence) : -len(fence)])
    assert "|" not in made
    assert "\n" not in made


def test_plain_text_is_escaped():
    said = plain("<b> [x](http://a.b) `c` | @user a_b_c\n# d www.e.f")

    assert said == r"\<b\> \[x\](http\://a.b) \`c\` \| @" + "\u200b" + r"user a\_b\_c # d www\.e.f"


def test_the_script_is_one_that_a_shell_can_read(nasty: Path):
    script = nasty / "reproduce.sh"
    code_lines = [line for line in script.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]

    assert subprocess.run(["/bin/sh", "-n", script], capture_output=True, check=False).returncode == 0
    assert [line for line in code_lines if not line.startswith(("TARGET=", "continuity run ", "curl -i -X "))] == []


def test_a_hostile_id_is_data_to_the_shell(failing: Path, tmp_path: Path):
    """The words of a curl, read back by a real shell, are those of the request."""
    data = load(failing)
    failed = next(each for each in data["requirements"] if each["id"] == "HISTORY-02")
    exchange = failed["evidence"][0]["exchanges"][0]
    evil = "$(touch pwned) `touch pwned` '; touch pwned; ' \" \\"
    exchange["request"]["headers"] = [["X-Hermes-Session-Id", evil], ["Authorization", "***"], ["X-Tenant", "***"]]
    failed["evidence"] = [failed["evidence"][0] | {"exchanges": [exchange], "expectation": "session"}]
    continuity("report", str(save(tmp_path, data | {"requirements": [failed]})), cwd=tmp_path)
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("curl", "continuity"):
        (commands / name).write_text('#!/bin/sh\nfor word in "$@"; do printf "%s\\n" "$word"; done\n')
        (commands / name).chmod(0o755)
    environ = {"PATH": f"{commands}:/usr/bin:/bin", "KEY": "k", "X_TENANT": "t", "TARGET": "http://127.0.0.1:9"}
    done = subprocess.run(
        ["/bin/sh", "reproduce.sh"], cwd=tmp_path, env=environ, capture_output=True, text=True, check=True
    )

    words = done.stdout.splitlines()
    assert f"X-Hermes-Session-Id: {evil}" in words
    assert "Authorization: Bearer k" in words
    assert "http://127.0.0.1:9/v1/chat/completions" in words
    assert "X-Tenant: ***" in words
    assert not (tmp_path / "pwned").exists()


def test_results_of_a_stranger_name_no_file_and_no_variable(failing: Path, tmp_path: Path):
    data = load(failing)
    failed = next(each for each in data["requirements"] if each["id"] == "HISTORY-02")
    exchange = failed["evidence"][0]["exchanges"][0]
    exchange["principal"] = "aws-secret"
    exchange["request"] |= {"headers": [["Authorization", "***"], ["Secret", "***"]], "body": "@/etc/hostname"}
    failed["evidence"] = [failed["evidence"][0] | {"exchanges": [exchange], "expectation": "session"}]
    continuity("report", str(save(tmp_path, data | {"requirements": [failed]})), cwd=tmp_path)

    for name in ("reproduce.sh", "report.html"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "curl -i -X POST" in text
        assert "--data-raw @/etc/hostname" in text
        assert set(re.findall(r"\$\{?([A-Z_]+)", text)) <= {"TARGET"}


def test_huge_headers_and_bodies_are_cut(nasty: Path):
    assert "h" * 2000 not in (nasty / "report.html").read_text(encoding="utf-8")
    assert (nasty / "report.md").stat().st_size < 65_536


def test_invalid_utf8_costs_no_format(nasty: Path):
    for name in FILES:
        assert (nasty / name).read_bytes().decode("utf-8")


def test_a_lone_surrogate_in_the_results_costs_no_format(failing: Path, tmp_path: Path):
    data = load(failing)
    data["target"]["name"] = "half \ud83d of it"
    done = continuity("report", str(save(tmp_path, data)), cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "half \\ud83d of it" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_comparison_with_a_hostile_run_is_inert(nasty: Path, failing: Path):
    for form in ("text", "md", "html"):
        done = continuity("compare", str(failing / "results.json"), "results.json", "--format", form, cwd=nasty)
        assert ACTING.findall(done.stdout) == []
        assert "<script" not in done.stdout

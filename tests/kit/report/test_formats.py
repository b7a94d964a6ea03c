"""All formats of one run, made from results.json alone."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from recorded import continuity, load, save

from continuity_conformance.report import files
from continuity_conformance.results.read import UnreadableResultsError, read


def test_one_run_writes_all_formats(failing: Path):
    assert {each.name for each in failing.iterdir()} == {"results.json", "terminal.txt", *files.FILES}


def test_results_json_alone_makes_them_again(failing: Path, tmp_path: Path):
    (tmp_path / "results.json").write_bytes((failing / "results.json").read_bytes())
    done = continuity("report", "results.json", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert {name: (tmp_path / name).read_bytes() for name in files.FILES} == {
        name: (failing / name).read_bytes() for name in files.FILES
    }


def test_they_can_be_made_elsewhere(failing: Path, tmp_path: Path):
    done = continuity("report", str(failing / "results.json"), "--to", "there/it/is", cwd=tmp_path)

    assert done.stdout.splitlines() == [f"there/it/is/{name}" for name in files.FILES]
    assert (tmp_path / "there" / "it" / "is" / "report.html").is_file()


def test_what_an_earlier_run_left_is_gone_when_a_run_begins(tmp_path: Path):
    (tmp_path / "report.html").write_text("an earlier run")
    done = continuity("check", "http://127.0.0.1:1", "--report", str(tmp_path), cwd=tmp_path)

    assert done.returncode == 3
    assert "unreachable" in (tmp_path / "report.html").read_text()


def test_fields_of_a_later_kit_are_passed_over(failing: Path, tmp_path: Path):
    data = load(failing) | {"later": {"and": "more"}}
    data["requirements"][0]["later"] = 1

    assert read(save(tmp_path, data)).rows[0].result.id == data["requirements"][0]["id"]


def test_results_without_what_the_spec_says_still_make_a_report(failing: Path, tmp_path: Path):
    data = load(failing)
    for row in data["requirements"]:
        for field in ("why", "origin", "how", "question", "checked", "build", "pitfalls", "scenarios"):
            del row[field]
    del data["again"]

    assert len(files.write(save(tmp_path, data), tmp_path)) == len(files.FILES)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("{}", "not results"),
        ("[]", "not results"),
        ('{"schema": "urn:session-continuity:schema:results:9.0"}', "not results"),
        ("\ufeff{}", "not JSON"),
    ],
)
def test_what_is_no_results_is_refused_in_one_line(tmp_path: Path, text: str, told: str):
    path = tmp_path / "results.json"
    path.write_text(text)
    done = continuity("report", "results.json", cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr.startswith("continuity: results.json: ")
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_missing_file_is_told_in_one_line(tmp_path: Path):
    done = continuity("report", "nowhere.json", cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr.startswith("continuity: nowhere.json: the file cannot be read")


def test_results_that_do_not_add_up_are_refused(failing: Path, tmp_path: Path):
    data = load(failing)
    data["counts"]["pass"] += 1
    path = tmp_path / "results.json"
    path.write_text(json.dumps(data))

    with pytest.raises(UnreadableResultsError, match="counts do not match"):
        read(path)


def test_a_folder_that_cannot_be_written_is_told_in_one_line(failing: Path, tmp_path: Path):
    (tmp_path / "file").write_text("")
    done = continuity("report", str(failing / "results.json"), "--to", "file", cwd=tmp_path)

    assert done.returncode == 4
    assert "the report cannot be written" in done.stderr
    assert "Traceback" not in done.stderr


def test_junit_tells_the_class_and_the_failure(failing: Path):
    cases = {
        next(each.get("value") for each in case.iter("property") if each.get("name") == "requirement"): case
        for case in ET.parse(failing / "junit.xml").getroot().iter("testcase")
    }
    failure = cases["HISTORY-02"].find("failure")

    assert failure.get("message") == "sees: expected red, blue, actual red, red, blue"
    assert "Why it matters" in failure.text
    assert cases["ECHO-08"].find("skipped").get("message").startswith("warned: ")
    assert cases["SLUG-16"].find("skipped") is not None


def test_a_known_failure_is_no_failure_in_junit(failing: Path, tmp_path: Path):
    data = load(failing)
    failed = next(each for each in data["requirements"] if each["id"] == "HISTORY-02")
    failed["known"] = {"reason": "in work", "until": "2099-01-01", "issue": None, "expired": False}
    files.write(save(tmp_path, data), tmp_path)
    cases = [case for case in ET.parse(tmp_path / "junit.xml").iter("testcase") if "HISTORY-02" in case.get("name")]

    assert cases[0].find("failure") is None
    assert cases[0].find("skipped").get("message").startswith("known until 2099-01-01 (in work): sees")
    assert "### Known failures (1)" in (tmp_path / "report.md").read_text()


def test_a_should_that_counts_is_a_failure_in_junit(failing: Path, tmp_path: Path):
    data = load(failing)
    data["gate"]["fail_on"] = "SHOULD"
    files.write(save(tmp_path, data), tmp_path)
    cases = [case for case in ET.parse(tmp_path / "junit.xml").iter("testcase") if "ECHO-08" in case.get("name")]

    assert cases[0].find("failure").get("message").startswith("sees: expected")
    assert "### Warned" not in (tmp_path / "report.md").read_text()


def test_report_md_fits_a_comment_however_much_fails(large: Path):
    assert len((large / "report.md").read_text(encoding="utf-8")) < 65_536


def test_report_html_is_small_however_much_fails(large: Path):
    assert (large / "report.html").stat().st_size < 1_500_000


def test_what_was_made_up_is_made_up_again(failing: Path, tmp_path: Path):
    data = load(failing)
    data["again"] |= {"examples": 50, "seed": 7}
    files.write(save(tmp_path, data), tmp_path)

    for name in ("reproduce.sh", "report.html"):
        assert "continuity run HISTORY-02 --target reference --examples 50 --seed 7" in (tmp_path / name).read_text()


def test_reproduce_sh_can_be_run(failing: Path):
    assert (failing / "reproduce.sh").stat().st_mode & 0o111
    assert "continuity run HISTORY-02 --target reference" in (failing / "reproduce.sh").read_text()


def test_a_curl_stands_only_where_one_request_shows_it(failing: Path, nasty: Path):
    """Doubled history is seen by the model alone; a wrong id stands in the answer."""
    assert "curl -i" not in (failing / "reproduce.sh").read_text()
    assert "curl -i -X POST" in (nasty / "reproduce.sh").read_text()


def slug_03(data: dict[str, Any]) -> dict[str, Any]:
    """The only row, with one scenario that evicts."""
    row = next(each for each in data["requirements"] if each["id"] == "SLUG-03")
    row["evidence"] = row["evidence"][:1]
    data["requirements"] = [row]
    return row["evidence"][0]


def events(folder: Path) -> list[str]:
    return re.findall('<li class="event">(.*?)</li>', (folder / "report.html").read_text())


def test_results_of_a_kit_that_noted_no_interventions_still_show_them(forking: Path, tmp_path: Path):
    data = load(forking)
    del slug_03(data)["interventions"]
    files.write(save(tmp_path, data), tmp_path)

    assert events(tmp_path) == ["<i>2</i> evict {response: $gone}"]


def test_a_step_that_was_not_reached_is_not_in_the_picture(forking: Path, tmp_path: Path):
    data = load(forking)
    slug_03(data).update(interventions=[], outcome="not_tested", reason="no control")
    files.write(save(tmp_path, data), tmp_path)

    assert events(tmp_path) == []


def test_the_picture_tells_an_answer_that_the_model_was_not_called_for(forking: Path, tmp_path: Path):
    data = load(forking)
    slug_03(data)["exchanges"][1]["replays"] = "1"
    files.write(save(tmp_path, data), tmp_path)

    assert (tmp_path / "report.html").read_text().count("in an earlier call (step 1) saw") == 1


def test_a_curl_does_not_stand_where_an_intervention_was_needed(nasty: Path, tmp_path: Path):
    data = load(nasty)
    note = {"at": 0.0, "step": "1", "does": "restart", "how": "", "proof": ""}
    for row in data["requirements"]:
        row["evidence"] = [each | {"interventions": [note]} for each in row["evidence"]]
    files.write(save(tmp_path, data), tmp_path)

    assert "curl -i" not in (tmp_path / "reproduce.sh").read_text()


def test_the_badge_has_the_form_that_shields_io_reads(failing: Path):
    badge = json.loads((failing / "badge.json").read_text())

    assert badge["schemaVersion"] == 1
    assert (badge["label"], badge["color"]) == ("session continuity", "red")
    assert ET.parse(failing / "badge.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_a_scenario_that_passed_is_a_line_for_each_exchange(good: Path):
    row = next(each for each in load(good)["requirements"] if each["id"] == "HISTORY-02")
    evidence = row["evidence"][0]

    assert (evidence["outcome"], evidence["exchanges"]) == ("pass", [])
    assert evidence["trace"][1] == "2  alice: POST /v1/chat/completions → 200; the model saw red, blue"


def test_each_requirement_is_a_line_of_the_file(good: Path):
    lines = (good / "results.json").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line.rstrip(",")) for line in lines if line.startswith('    {"id"')]

    assert rows == load(good)["requirements"]

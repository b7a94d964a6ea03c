"""Results are listed if they are whole, as the run wrote them, of a version and recent; whether they are good does not matter."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from processes import called

from continuity_conformance.results.write import digest, with_digest
from continuity_spec.load.schema import schema

PUBLISHED = Path(__file__).parents[3] / "docs" / "results" / "mastra-1.71.0" / "results.json"
TODAY = datetime.now(UTC)


def results(**changes: Any) -> dict[str, Any]:
    """The results of a run that failed a lot, and is of today."""
    data = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    data.pop("digest", None)
    return {**data, "started": TODAY.isoformat(timespec="milliseconds").replace("+00:00", "Z"), **changes}


@pytest.fixture
def submitted(tmp_path: Path):
    def submit(data: dict[str, Any]):
        (tmp_path / "results.json").write_text(json.dumps(data))
        return called("submit", str(tmp_path / "results.json"), "--to", str(tmp_path / "listed"))

    return submit


def test_failing_results_are_written_in_the_form_that_is_published(submitted, tmp_path):
    done = submitted(with_digest(results()))
    folder = tmp_path / "listed" / "mastra-1.71.0"
    written = json.loads((folder / "results.json").read_text(encoding="utf-8"))

    assert done.returncode == 0, done.stderr
    assert written["verdict"] == "not_conformant"
    assert written["digest"] == digest(written)
    jsonschema.validate(written, schema("results"))
    assert (folder / "command.txt").read_text().endswith("  continuity check mastra==1.71.0 --report DIR\n")


TRACEBACK = """Its output:
  File "/srv/my gateway/app/chat.py", line 31, in chat
    at turn (/srv/gateway/turns.mjs:12:7)
    at file:///opt/gateway/dist/server.js:3:1
  cannot open /home/jane/gateway/data.db, or /Users/jane/data.db
  POST http://127.0.0.1:9100/v1/chat/completions"""


def test_where_a_machine_has_its_files_is_left_out(submitted, tmp_path):
    data = results(again={"target": None, "profile": "/srv/conformance/my.yaml"})
    data["requirements"][0]["reason"] = (
        f"{TRACEBACK}\nRun it again: continuity run X --profile /srv/conformance/my.yaml"
    )
    done = submitted(with_digest(data))
    text = (tmp_path / "listed" / "mastra-1.71.0" / "results.json").read_text(encoding="utf-8")

    assert done.returncode == 0, done.stderr
    assert [each for each in ("/srv", "/opt", "jane") if each in text] == []
    assert json.loads(text)["requirements"][0]["reason"] == (
        "Its output:\n"
        '  File "chat.py", line 31, in chat\n'
        "    at turn (turns.mjs:12:7)\n"
        "    at server.js:3:1\n"
        "  cannot open ~/gateway/data.db, or ~/data.db\n"
        "  POST http://127.0.0.1:9100/v1/chat/completions\n"
        "Run it again: continuity run X --profile my.yaml"
    )
    assert json.loads(text)["again"]["profile"] == "my.yaml"


def test_scenarios_that_do_not_apply_are_published_and_those_that_passed_are_not(submitted, tmp_path):
    data = results()
    row = next(each for each in data["requirements"] if each["verdict"] == "fail")
    silent = {**row["evidence"][0], "scenario": "other", "outcome": "not_applicable", "kinds": [], "reason": "no slugs"}
    row["evidence"] += [silent, {**silent, "scenario": "another", "outcome": "pass"}]
    submitted(with_digest(data))
    written = json.loads((tmp_path / "listed" / "mastra-1.71.0" / "results.json").read_text(encoding="utf-8"))
    evidence = next(each["evidence"] for each in written["requirements"] if each["id"] == row["id"])

    assert [(each["scenario"], each["outcome"]) for each in evidence][-1] == ("other", "not_applicable")
    assert len(evidence) == len(row["evidence"]) - 1


def changed(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, "verdict": "conformant"}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (with_digest(results(finished=False)), "stopped before its end"),
        (with_digest(results(complete=False)), "Run it without --class, --area and -k"),
        (results(), "There is no digest"),
        (changed(with_digest(results())), "was changed after the run"),
        (with_digest(results(target={**results()["target"], "name": "my gateway"})), "has no version"),
        (with_digest(results(started=(TODAY - timedelta(days=91)).isoformat())), "older than 90 days"),
    ],
)
def test_what_cannot_be_relied_on_is_not_listed(submitted, tmp_path, data, words):
    done = submitted(data)

    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / "listed").exists()


def test_a_digest_does_not_depend_on_formatting_or_order():
    assert digest({"a": 1, "b": [2, "é"]}) == digest(json.loads('{"b": [2, "\\u00e9"],\n "a": 1}'))
    assert digest({"a": 1}) != digest({"a": 2})


def test_a_run_writes_its_digest(tmp_path):
    called("check", "-k", "SLUG-16", "--report", str(tmp_path / "report"))
    written = json.loads((tmp_path / "report" / "results.json").read_text(encoding="utf-8"))

    assert written["digest"] == digest(written)

"""What the page starts: the doctor and a run, with the key in the environment of the child and nowhere else."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from page_visitor import Visitor, page_server
from processes import called, processes_with, serving
from thread_servers import Page, http_server

from continuity_conformance.core.errors import UsageError
from continuity_conformance.ui.commands import check, environment
from continuity_conformance.ui.form import Form

KEY = "sk-typed-into-the-page-4711"
SLOW = Path(__file__).parents[2] / "servers" / "hostile.py"


@pytest.fixture(scope="module")
def url():
    with serving() as url:
        yield url


def all_texts(folder: Path) -> str:
    return "\n".join(path.read_text("utf-8", "replace") for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def parrot():
    """A server that repeats every secret it is sent."""
    with subprocess.Popen(
        [sys.executable, str(SLOW.with_name("parrot.py"))], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


def test_the_key_reaches_the_target_and_nothing_else(parrot, tmp_path):
    with page_server(tmp_path) as (process, visitor):
        visitor.come_in()
        form = {"target": parrot, "key": KEY, "only": "ECHO-01 or HISTORY-02"}
        examined = visitor.ask("POST", "/doctor", form)
        ended = visitor.played(**form)
        shown = [
            visitor.ask("GET", f"/runs/{ended['run']}{path}").text
            for path in ("", "/requirements/ECHO-01", "/files/report.html")
        ]
        told = json.dumps(visitor.events())
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)

    kept = all_texts(tmp_path)
    assert examined.json["findings"]["said"]
    assert "alice: $TARGET_KEY" in kept
    assert "***" in kept
    assert KEY not in "".join([examined.text, *shown, told, kept, output, errors])


def test_no_command_line_has_the_key(parrot, visitor):
    answer = visitor.ask("POST", "/runs", {"target": parrot, "key": KEY, "only": "ECHO"})
    while not (found := processes_with(KEY)):
        time.sleep(0.01)
    commands = [Path(f"/proc/{process}/cmdline").read_text() for process in found]
    visitor.events()

    assert answer.status == 201
    assert [command for command in commands if KEY in command] == []


def test_the_command_of_a_run(tmp_path: Path):
    form = Form(target="http://127.0.0.1:1", key=KEY, classes=("Core", "Responses"), only="ECHO or SLUG-01")
    command = check(form, tmp_path)

    assert command[3:] == (
        *("check", "--json", f"--report={tmp_path}", f"--profile={tmp_path}/profile.yaml"),
        *("--class=Core", "--class=Responses", "-kECHO or SLUG-01", "--", "http://127.0.0.1:1"),
    )
    assert environment(form, {"PATH": "/bin", "GITHUB_ACTIONS": "true"}) == {"PATH": "/bin", "TARGET_KEY": KEY}
    assert (tmp_path / "profile.yaml").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("profile", "written"),
    [
        ("", "principals: {alice: $TARGET_KEY}\n"),
        ("name: mine", "name: mine\nprincipals: {alice: $TARGET_KEY}\n"),
        ("principals: {bob: $TARGET_KEY}", "principals: {bob: $TARGET_KEY}\n"),
        ("headers: {X-Key: '${TARGET_KEY}'}", "headers: {X-Key: '${TARGET_KEY}'}\n"),
    ],
)
def test_the_key_has_a_name_in_the_profile(profile: str, written: str):
    assert Form(key=KEY, profile=profile).profile_text() == written


def test_a_key_that_would_not_be_used_is_a_mistake(tmp_path: Path):
    (tmp_path / "my.yaml").write_text("principals: {alice: $OTHER}\n")

    with pytest.raises(UsageError, match=r"alice: \$TARGET_KEY"):
        Form(key=KEY, profile="principals: {alice: $OTHER}").profile_text()
    with pytest.raises(UsageError, match=r"my\.yaml: the key would not be used"):
        Form(key=KEY, file=str(tmp_path / "my.yaml")).check()
    with pytest.raises(UsageError, match="there are two profiles"):
        Form(file="my.yaml", profile="name: mine").check()
    with pytest.raises(UsageError, match="no header field"):
        Form(key="a\r\nb").check()


@pytest.mark.parametrize("target", ["-v", "--help", "--report=/tmp/elsewhere"])
def test_an_address_is_never_an_option(visitor: Visitor, target: str):
    ended = visitor.played(target=target)

    assert ended["exit_code"] == 2
    assert ended["message"].startswith(f'There is no target "{target}"')


def mistakes(page: str) -> dict[str, dict[str, str]]:
    return {
        "closed": {"target": "http://127.0.0.1:1"},
        "unknown": {"target": "refrence"},
        "empty": {"target": " "},
        "page": {"target": page},
        "expression": {"target": "reference", "only": "and and"},
        "nothing": {"target": "reference", "only": "NOSUCH"},
    }


@pytest.mark.parametrize("which", sorted(mistakes("")))
def test_a_mistake_is_told_in_the_words_of_the_command(visitor: Visitor, which: str):
    with http_server(Page) as page:
        form = mistakes(page)[which]
        ended = visitor.played(**form)
        only = ["-k", form["only"]] if "only" in form else []
        done = called("check", form["target"].strip(), *only)

    assert done.stderr == f"continuity: {ended['message']}\n"
    assert (ended["exit_code"], ended["began"]) == (done.returncode, False)
    assert visitor.ask("GET", "/runs").text.strip() == ""


def test_what_a_target_wrote_before_it_ended_is_told_whole(visitor: Visitor):
    profile = "name: mine\nprocess: {start: [sh, -c, 'echo first line; echo second line; exit 3']}\n"
    ended = visitor.played(profile=profile, only="ECHO-01")

    assert ended["exit_code"] == 4
    assert ended["message"].startswith("sh: The target ended during its start, with exit code 3.")
    assert "first line\n" in ended["message"]
    assert "second line" in ended["message"]


def test_a_typo_in_a_profile_is_told_with_its_line(visitor: Visitor, url: str):
    form = {"target": url, "profile": "name: mine\nheadr: X-Id\n"}
    examined, ended = visitor.ask("POST", "/doctor", form).json, visitor.played(**form)

    assert "profile.yaml:2" in examined["error"]
    assert 'Did you mean "header"?' in ended["message"]
    assert (examined["findings"], examined["profile"], ended["began"]) == (None, None, False)


def test_the_doctor_writes_the_name_of_the_key(visitor: Visitor):
    with serving("--key", f"alice={KEY}") as url:
        told = visitor.ask("POST", "/doctor", {"target": url, "key": KEY}).json
        ended = visitor.played(target=url, key=KEY, profile=told["profile"], only="ECHO-01")

    assert "principals: {alice: $TARGET_KEY}" in told["profile"]
    assert [each["verdict"] for each in visitor.events() if each["event"] == "result"] == ["pass"]
    assert ended["message"] == ""


def test_a_wrong_key_is_told_as_the_doctor_tells_it(visitor: Visitor):
    with serving("--key", "alice=the-right-key") as url:
        told = visitor.ask("POST", "/doctor", {"target": url, "key": KEY}).json

    assert told["findings"]["exit_code"] == 2
    assert told["error"] == told["findings"]["error"]
    assert "401" in told["error"]


def test_the_profile_of_the_doctor_runs(visitor: Visitor, url: str):
    written = visitor.ask("POST", "/doctor", {"target": url}).json["profile"]
    ended = visitor.played(target=url, profile=written, only="ECHO-01")

    assert "header: X-" in written
    assert ended["exit_code"] == 5


def test_an_examination_that_succeeds_reports_no_error(visitor: Visitor, url: str):
    """The command says which file it wrote, on stderr. That file is temporary, and it is no error."""
    told = visitor.ask("POST", "/doctor", {"target": url}).json

    assert told["findings"]["exit_code"] == 0
    assert told["error"] == ""


def test_the_events_of_a_run_come_in_order_and_again_for_who_comes_later(visitor: Visitor, url: str):
    visitor.played(target=url, only="ECHO-01 or ECHO-02")
    events = visitor.events()
    again = visitor.events(seen=3)

    assert [each["event"] for each in events if each["event"] != "left"] == [
        "begin",
        "start",
        "result",
        "result",
        "ended",
    ]
    assert {each["id"]: each["verdict"] for each in events if each["event"] == "result"} == {
        "ECHO-01": "pass",
        "ECHO-02": "pass",
    }
    assert again == events[3:]


def test_one_run_at_a_time(visitor: Visitor, url: str):
    first = visitor.ask("POST", "/runs", {"target": url, "only": "ECHO"})
    second = visitor.ask("POST", "/runs", {"target": url, "only": "ECHO"})
    visitor.events()

    assert (first.status, second.status) == (201, 400)
    assert second.json["error"].startswith("a run is under way")


def test_a_run_that_is_stopped_keeps_its_results(visitor: Visitor, url: str):
    visitor.ask("POST", "/runs", {"target": url})
    visitor.events("result")
    visitor.ask("POST", "/stop", {})
    ended = visitor.events()[-1]
    shown = visitor.ask("GET", f"/runs/{ended['run']}").text

    assert ended["exit_code"] == 143
    assert "The run did not finish" in shown


def test_the_end_of_the_page_ends_its_run_and_keeps_the_results(tmp_path: Path, url: str):
    with page_server(tmp_path) as (process, visitor):
        visitor.come_in()
        run = visitor.ask("POST", "/runs", {"target": url}).json["run"]
        visitor.events("result")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    (results,) = tmp_path.rglob("results.json")

    assert (process.returncode, errors) == (0, "")
    assert "the run was stopped before this was decided" in results.read_text()
    assert any(
        each["reason"] != "the run was stopped before this was decided"
        for each in json.loads(results.read_text())["requirements"]
    )
    assert processes_with(run) == []


def test_a_page_that_is_killed_leaves_no_run_behind(tmp_path: Path, url: str):
    with page_server(tmp_path) as (process, visitor):
        visitor.come_in()
        run = visitor.ask("POST", "/runs", {"target": url}).json["run"]
        visitor.events("result")
        process.kill()
        deadline = time.monotonic() + 30
        while processes_with(run) and time.monotonic() < deadline:
            time.sleep(0.2)

    assert processes_with(run) == []


def test_a_second_run_is_compared_with_the_one_before(visitor: Visitor):
    with serving("--defect", "history-doubles") as url:
        first = visitor.played(target=url, only="HISTORY-02 or ECHO-01")["run"]
        second = visitor.played(target=url, only="HISTORY-02 or ECHO-01")["run"]
    shown, beside = visitor.ask("GET", f"/runs/{second}").text, visitor.ask("GET", f"/runs/{second}/since/{first}")

    assert "Since the run of" not in visitor.ask("GET", f"/runs/{first}").text
    assert "The verdicts are the same." in shown
    assert beside.status == 200
    assert beside.headers["Content-Security-Policy"] == "sandbox allow-scripts"


def test_a_cause_has_an_issue_to_download(visitor: Visitor):
    with serving("--defect", "history-doubles") as url:
        run = visitor.played(target=url, only="HISTORY-02 or ECHO-01")["run"]
    issue, none = (visitor.ask("GET", f"/runs/{run}/issues/{number}") for number in (1, 2))

    assert issue.headers["Content-Disposition"] == 'attachment; filename="01-history-doubles.md"'
    assert issue.text.startswith("# Every stored turn reaches the model twice")
    assert none.status == 404


def test_only_the_newest_runs_are_kept(tmp_path: Path):
    from continuity_conformance.ui.history import RunHistory  # noqa: PLC0415 - the only test of it

    history = RunHistory(tmp_path / "ui")
    made = [history.new() for _ in range(23)]

    assert len([folder for folder in made if folder.exists()]) == 20
    assert made[-1].exists()
    assert made[-1].stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("body", [[], {"target": 1}, {"targett": "x"}, "x"])
def test_what_is_no_form_is_refused_in_one_line(visitor: Visitor, body: object):
    answer = visitor.ask("POST", "/runs", body)

    assert answer.status == 400
    assert answer.json["error"].startswith("this is no form of the page")

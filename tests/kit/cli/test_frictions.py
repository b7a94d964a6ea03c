"""What stood in the way of somebody who used the command for the first time."""

import contextlib
import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hostile import SERVERS as HOSTILE
from processes import CONTINUITY, called
from thread_servers import Moved, Page, Stuck, http_server, silent_port

from continuity_conformance.core.rerun import target_arguments

SERVERS = Path(__file__).parents[2] / "servers"
PROFILE = """
name: mine
header: X-Chat-Id
limits: {{turn_seconds: 1}}
options: {{derivation: none, compaction: in-place, environment: none}}
offers: [responses]
process: {{start: ["{python}", "{server}", "{{port}}", "{{probe}}", agent]}}
body_fields: {{agent_id: agent-7}}
"""


@contextlib.contextmanager
def hostile(name: str):
    command = [sys.executable, str(SERVERS / "hostile.py"), name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            yield server.stdout.readline().removeprefix("listening on ").strip()
        finally:
            server.kill()


@pytest.fixture
def brief(tmp_path: Path) -> str:
    """A profile for servers that are not worth waiting for."""
    path = tmp_path / "brief.yaml"
    path.write_text("limits: {turn_seconds: 1}\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("handler", [Page, Moved])
def test_a_page_and_a_redirect_are_no_server_of_ours(handler, brief):
    with http_server(handler) as url:
        done = called("check", url, "--profile", brief)

    assert done.returncode == 3
    assert "There is no OpenAI-compatible server at this address: POST /v1/chat/completions returns" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("404", 3, "There is no OpenAI-compatible server at this address"),
        ("500", 3, "A plain turn fails: 500"),
        ("400", 2, "The target refuses a plain turn: 400"),
        ("hangs", 3, "The server accepts the connection, but there is no complete answer in 1 s"),
    ],
)
def test_a_server_on_which_no_turn_succeeds_ends_the_run_at_once(name, code, words, brief):
    assert name in HOSTILE
    with hostile(name) as url:
        done = called("check", url, "--profile", brief)

    assert (done.returncode, words in done.stderr) == (code, True), done.stderr


def test_a_server_whose_turns_hang_is_told_by_its_turn(brief):
    with http_server(Stuck) as url:
        done = called("check", url, "--profile", brief)

    assert done.returncode == 3
    assert "A plain turn fails: no complete answer in 1 s" in done.stderr


@pytest.mark.parametrize("command", ["check", "doctor"])
def test_a_server_that_hangs_is_named_within_fifteen_seconds(command: str, tmp_path: Path):
    """However long its turns may take."""
    profile = tmp_path / "slow.yaml"
    profile.write_text("limits: {turn_seconds: 120}\n", encoding="utf-8")
    with silent_port() as (url, _):
        begun = time.monotonic()
        done = called(command, url, "--profile", str(profile))

    assert done.returncode == 3
    assert time.monotonic() - begun < 15
    assert "The server accepts the connection, but there is no complete answer in 5 s" in done.stderr


@pytest.mark.parametrize(
    ("expression", "words"),
    [("NOSUCH", "matches no requirement"), ("ECHOO", 'Did you mean "ECHO"?'), ("and and", "this is no expression")],
)
def test_an_expression_that_matches_nothing_is_a_mistake(expression, words):
    done = called("check", "-k", expression)

    assert done.returncode == 2
    assert words in done.stderr


def test_an_expression_that_the_class_leaves_out_is_told_so():
    done = called("check", "--class", "Core", "-k", "SLUG-01")

    assert done.returncode == 2
    assert "drop --class" in done.stderr


@pytest.mark.parametrize(
    ("command", "what"), [("model", "the model cannot listen"), ("ui", "the page cannot be served")]
)
def test_a_busy_port_of_the_model_or_of_the_page_is_told_in_one_line(command: str, what: str):
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        done = called(command, "--port", str(port))

    assert done.returncode == 2
    assert done.stderr == (
        f"continuity: 127.0.0.1 port {port}: {what}: another program uses this port. Choose another with --port.\n"
    )


def test_a_target_that_is_still_starting_is_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    command = [CONTINUITY, "check", f"http://127.0.0.1:{port}", "--wait", "60", "-k", "ECHO-02", "--accept-untested"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as checking:
        time.sleep(2)
        with subprocess.Popen(
            [CONTINUITY, "serve", "--db", ":memory:", "--port", port],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as server:
            told = checking.communicate(timeout=90)
            server.terminate()

    assert checking.returncode == 0, told


def test_a_port_that_is_published_before_its_server_listens_is_waited_for():
    """As with `docker run -p`: the proxy takes the connection and drops it until the server is there."""
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        port = str(proxy.getsockname()[1])
        command = [CONTINUITY, "check", f"http://127.0.0.1:{port}", "--wait", "60", "-k", "ECHO-02"]
        with subprocess.Popen([*command, "--accept-untested"], stderr=subprocess.PIPE, text=True) as checking:
            for _ in range(2):
                proxy.accept()[0].close()
            proxy.close()
            with subprocess.Popen(
                [CONTINUITY, "serve", "--db", ":memory:", "--port", port],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ) as server:
                _, errors = checking.communicate(timeout=90)
                server.terminate()

    assert (checking.returncode, errors) == (0, "")


def test_waiting_ends_with_the_same_error():
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    begun = time.monotonic()
    done = called("check", url, "--wait", "1.5")

    assert done.returncode == 3
    assert time.monotonic() - begun >= 1.5


def test_a_busy_port_is_told_in_one_line():
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = str(busy.getsockname()[1])
        done = subprocess.run(
            [CONTINUITY, "serve", "--db", ":memory:", "--port", port],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    assert done.returncode == 1
    assert done.stderr == (
        f"127.0.0.1 port {port}: the server cannot listen: another program uses this port. Choose another with --port.\n"
    )


@pytest.mark.parametrize("command", ["serve", "model", "ui"])
@pytest.mark.parametrize("port", ["99999", "-1"])
def test_a_port_that_does_not_exist_is_wrong_usage(command: str, port: str):
    done = subprocess.run(
        [CONTINUITY, command, "--port", port], capture_output=True, text=True, check=False, timeout=60
    )

    assert done.returncode == 2
    assert "argument --port: a port is a number from 0 to 65535" in done.stderr


def test_an_empty_address_is_not_the_bundled_server():
    """A variable that is not set: continuity check "$URL"."""
    done = called("check", "")

    assert done.returncode == 2
    assert done.stderr == "continuity: the address of the target is empty. Write it as http://host:port\n"


@pytest.mark.parametrize("address", ["127.0.0.1:8080", "localhost:8080/v1"])
def test_an_address_without_a_scheme_is_put_right(address: str):
    done = called("check", address)

    assert done.returncode == 2
    assert done.stderr == f'continuity: "{address}" is not a valid address. Write it as http://{address}\n'


def test_the_events_of_a_run_are_one_object_on_each_line():
    events = [json.loads(line) for line in called("check", "--json", "-k", "ECHO-01 or ECHO-02").stdout.splitlines()]
    results = {each["id"]: each["verdict"] for each in events if each["event"] == "result"}

    assert [each["event"] for each in events if each["event"] != "left"] == ["start", "result", "result", "end"]
    assert {each["id"] for each in events[0]["requirements"]} == {"ECHO-01", "ECHO-02"}
    assert results == {"ECHO-01": "pass", "ECHO-02": "pass"}
    assert (events[-1]["verdict"], events[-1]["exit_code"], events[-1]["error"]) == ("incomplete", 5, None)


def test_the_bundled_server_calls_itself_as_users_call_it():
    done = subprocess.run([CONTINUITY, "serve", "--help"], capture_output=True, text=True, check=False, timeout=60)

    assert done.stdout.startswith("usage: continuity serve ")


def test_a_digit_that_is_left_out_is_put_right():
    assert 'Did you mean "DERIVE-04"?' in called("spec", "show", "derive-4").stderr


@pytest.mark.parametrize("command", [("spec", "show"), ("explain",)])
def test_a_word_like_no_id_is_answered_in_a_line_and_not_with_all_ids(command: tuple[str, ...]):
    done = called(*command, "Core")

    assert done.returncode == 2
    assert "Ids are listed by: continuity spec list" in done.stderr
    assert len(done.stderr) < 200


@pytest.mark.parametrize(
    ("target", "profile", "expected"),
    [
        ("reference", None, ["--target", "reference"]),
        ("reference", "my.yaml", ["--profile", "my.yaml"]),
        ("http://host", "my.yaml", ["--target", "http://host", "--profile", "my.yaml"]),
        (None, "my.yaml", ["--profile", "my.yaml"]),
    ],
)
def test_a_profile_that_starts_a_target_names_it(target, profile, expected):
    assert target_arguments(target, profile) == expected


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run on a server of one's own, which the kit started and which fails something."""
    folder = tmp_path_factory.mktemp("own")
    text = PROFILE.format(python=sys.executable, server=SERVERS / "demanding.py")
    (folder / "my.yaml").write_text(text, encoding="utf-8")
    done = called("check", "--profile", str(folder / "my.yaml"), "--report", str(folder / "report"), "-k", "ERROR-04")
    (folder / "said.txt").write_text(done.stdout, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ["said.txt", "report/report.html", "report/report.md", "report/reproduce.sh"])
def test_the_command_that_runs_it_again_names_the_profile(name, own_server):
    text = (own_server / name).read_text(encoding="utf-8")

    assert f"continuity run ERROR-04 --profile {own_server}/my.yaml" in " ".join(text.split())
    assert "--target reference" not in text


def test_results_name_the_profile_and_what_the_target_wrote(own_server):
    results = json.loads((own_server / "report" / "results.json").read_text(encoding="utf-8"))
    failed = next(each for each in results["requirements"] if each["id"] == "ERROR-04")

    assert results["again"]["target"] is None
    assert results["again"]["profile"] == f"{own_server}/my.yaml"
    assert "--target reference" not in json.dumps(results)
    assert any("refused with 4" in each["output"] for each in failed["evidence"])
    assert any("What the target wrote meanwhile:" in each["failure"] for each in failed["evidence"])


def test_single_requirements_show_failures_in_full_and_other_scenarios_in_a_line(own_server):
    brief = called("run", "SLUG-02", "--profile", str(own_server / "my.yaml"))
    whole = called("run", "SLUG-02", "-v", "--profile", str(own_server / "my.yaml"))

    assert "→ POST" not in brief.stdout
    assert "(-v shows the whole transcript of every scenario)" in brief.stdout
    assert "→ POST" in whole.stdout

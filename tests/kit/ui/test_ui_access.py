"""Who may use the page: it can start programs, so nobody but the user who started it."""

import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from page_visitor import Visitor, page_server
from processes import called


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """A page that most tests here share: nobody changes anything on it."""
    with page_server(tmp_path_factory.mktemp("page")) as (_, visitor):
        yield visitor


@pytest.fixture
def outside(page: Visitor) -> Visitor:
    """Somebody who has not shown the token yet."""
    return Visitor(page.port, page.token)


PATHS = ["/", "/ui.js", "/style.css", "/events", "/runs", "/runs/20260101-000000-00000000"]


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_nothing_is_shown(outside: Visitor, path: str):
    answer = outside.ask("GET", path)

    assert answer.status == 403
    assert answer.text == "Open the address that `continuity ui` printed: it has the token.\n"


@pytest.mark.parametrize("path", ["/runs", "/doctor", "/stop"])
def test_without_the_token_nothing_is_done(outside: Visitor, path: str):
    assert outside.ask("POST", path, {"target": "reference"}).status == 403


@pytest.mark.parametrize("token", ["", "wrong", "ü"])
def test_a_wrong_token_opens_nothing(outside: Visitor, token: str):
    outside.token = token.encode().decode("latin-1")
    answer = outside.ask("GET", "/", Cookie=f"continuity-ui-{outside.port}={token.encode().decode('latin-1')}")

    assert answer.status == 403


def test_a_visit_with_the_token_gets_a_cookie_and_an_address_without_it(outside: Visitor):
    answer = outside.come_in()

    assert (answer.status, answer.headers["Location"]) == (303, "/")
    assert {"HttpOnly", "Path=/", "SameSite=Lax"} <= set(answer.headers["Set-Cookie"].split("; "))
    assert outside.ask("GET", "/").status == 200


def test_two_pages_do_not_take_each_others_token(visitor: Visitor, tmp_path: Path):
    with page_server(tmp_path) as (_, other):
        name, _, token = visitor.cookie.partition("=")

        assert other.ask("GET", "/", Cookie=f"continuity-ui-{other.port}={token}").status == 403
        assert name.endswith(str(visitor.port))


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "0.0.0.0:{port}"])
def test_another_name_for_this_machine_is_refused(visitor: Visitor, host: str):
    """A page of evil.example, whose name leads to 127.0.0.1 the second time that somebody asks."""
    assert visitor.ask("GET", "/", Host=host.format(port=visitor.port)).status == 403


def test_localhost_is_this_machine(visitor: Visitor):
    assert visitor.ask("GET", "/", Host=f"localhost:{visitor.port}").status == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1", ""]
)
def test_a_page_of_another_site_starts_nothing(visitor: Visitor, origin: str):
    assert visitor.ask("POST", "/runs", {"target": "reference"}, Origin=origin.format(port=visitor.port)).status == 403


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_what_a_form_of_another_site_can_send_is_no_form_of_ours(visitor: Visitor, kind: str):
    assert visitor.ask("POST", "/runs", {"target": "reference"}, Content_Type=kind).status == 415


def test_a_foreign_origin_reads_nothing_either(visitor: Visitor):
    assert visitor.ask("GET", "/runs", Origin="http://evil.example").status == 403


@pytest.mark.parametrize("path", ["/", "/ui.js", "/runs", "/nothing"])
def test_every_answer_says_what_a_browser_may_do_with_it(visitor: Visitor, path: str):
    headers = visitor.ask("GET", path).headers

    assert "script-src 'self';" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"


def test_the_page_has_no_script_and_no_style_in_it(visitor: Visitor):
    page = visitor.ask("GET", "/").text

    assert page.count("<script") == page.count('<script type="module" src="/ui.js"></script>') == 1
    assert "<style" not in page
    assert " style=" not in page


@pytest.mark.parametrize(
    "path", ["/../form.py", "/runs/..", "/runs/../../x", "/runs/%2e%2e/files/results.json", "/ui.py"]
)
def test_no_other_file_of_the_machine_is_served(visitor: Visitor, path: str):
    assert visitor.ask("GET", path).status == 404


def test_it_listens_on_loopback_only(outside: Visitor):
    """On Linux every address of 127/8 is this machine: one that it is not bound to answers nothing."""
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", outside.port), timeout=5)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_without_a_word(tmp_path: Path, number: int):
    with page_server(tmp_path) as (process, visitor):
        visitor.come_in()
        process.send_signal(number)
        output, errors = process.communicate(timeout=30)

    assert (process.returncode, output, errors) == (0, "", "")


def test_the_command_line_fills_in_the_form(tmp_path: Path):
    (tmp_path / "my.yaml").write_text("name: mine\n")
    with page_server(tmp_path, "--target", 'http://127.0.0.1:1/"><b>', "--profile", "my.yaml") as (_, visitor):
        visitor.come_in()
        page = visitor.ask("GET", "/").text

    assert 'value="http://127.0.0.1:1/&#34;&gt;&lt;b&gt;"' in page
    assert f'value="{tmp_path}/my.yaml"' in page


def test_help_names_its_options():
    done = called("ui", "--help")

    assert isinstance(done, subprocess.CompletedProcess)
    assert {"--port", "--open,", "--no-open", "--target", "--profile"} <= set(done.stdout.split())

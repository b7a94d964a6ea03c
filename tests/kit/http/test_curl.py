"""A results.json may come from a stranger: a command made from it reads no file and no variable of whoever runs it, but keys."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from thread_servers import http_server

from continuity_conformance.http.curl import curl

KEYS = {"KEY": "key-of-alice", "BOB_KEY": "key-of-bob", "STRANGER_KEY": "key-of-nobody"}
MINE = {"SECRET": "mine-1", "SECRET_KEY": "mine-2", "AWS_SECRET_ACCESS_KEY": "mine-3", "X_TENANT": "mine-4"}
"""Variables of whoever runs a command."""
HOSTILE = ["secret", "aws-secret-access", "SECRET", "x;touch pwned", "$(touch pwned)", "`touch pwned`", "", "a b"]
WORDS = ["key", "cut", "swapped"]


class Arrived(NamedTuple):
    path: str
    headers: Mapping[str, str]
    body: str


@pytest.fixture
def server() -> Iterator[tuple[str, list[Arrived]]]:
    """A server on loopback: its URL, and the requests that arrive."""
    arrived: list[Arrived] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            arrived.append(Arrived(self.path, dict(self.headers), body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http_server(Handler) as url:
        yield url, arrived


def exchange(url: str, principal: str = "alice", **request: object) -> dict[str, Any]:
    sent = {"method": "POST", "url": url, "headers": [], "body": "{}", **request}
    return {"principal": principal, "request": sent}


def variables(command: str) -> set[str]:
    """The names of variables that a shell would fill in, single quotes taken away."""
    return set(re.findall(r"\$\{?(\w+)", re.sub(r"'[^']*'", "", command)))


def run(command: str | None, folder: Path) -> None:
    assert command is not None
    assert shutil.which("curl") is not None
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), **KEYS, **MINE}
    subprocess.run(["/bin/sh", "-c", command], cwd=folder, env=environ, capture_output=True, check=True, timeout=20)

    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("body", ["@/etc/hostname", "@-", "@", "<x", "-", "--config", "%41\\n", "a'b$SECRET`c`"])
def test_a_body_is_sent_as_it_is(server, tmp_path: Path, body: str):
    url, arrived = server

    run(curl(exchange(f"{url}/v1", body=body)), tmp_path)

    assert [each.body for each in arrived] == [body]


@pytest.mark.parametrize(
    ("principal", "key_as"),
    [*((principal, "Bearer {key}") for principal in HOSTILE), *(("secret", f"{{{each}}}") for each in WORDS)],
)
def test_the_name_of_a_principal_names_no_variable(server, tmp_path: Path, principal: str, key_as: str):
    url, arrived = server
    command = curl(exchange(url, principal, headers=[["Authorization", "***"]], key_as=key_as))

    run(command, tmp_path)

    assert variables(command or "") == set()
    assert arrived[0].headers["Authorization"] == "***"


@pytest.mark.parametrize("name", ["X-Tenant", "Secret", "AWS_SECRET_ACCESS_KEY"])
def test_a_hidden_header_names_no_variable(server, tmp_path: Path, name: str):
    """Whoever runs the command writes the value in its place."""
    url, arrived = server
    command = curl(exchange(url, headers={name: "***"}))

    run(command, tmp_path)

    assert variables(command or "") == set()
    assert arrived[0].headers[name] == "***"


@pytest.mark.parametrize(
    ("principal", "variable"), [("alice", "KEY"), ("bob", "BOB_KEY"), ("stranger", "STRANGER_KEY")]
)
def test_a_key_comes_from_the_variable_of_its_principal(server, tmp_path: Path, principal: str, variable: str):
    url, arrived = server
    command = curl(exchange(url, principal, headers={"Authorization": "***", "X-Api-Key": "***"}))

    run(command, tmp_path)

    key = KEYS[variable]
    assert variables(command or "") == {variable}
    assert (arrived[0].headers["Authorization"], arrived[0].headers["X-Api-Key"]) == (f"Bearer {key}", key)


@pytest.mark.parametrize(
    "url",
    [
        "-K/etc/hostname",
        "--config=x",
        "-oout",
        "file:///etc/hostname",
        "scp://h/x",
        "h/x",
        "",
        "@/etc/hostname",
        " http://h",
    ],
)
def test_what_is_no_http_address_is_no_command(url: str):
    assert curl(exchange(url)) is None
    assert curl(exchange(url), base=url) is None


def test_the_address_comes_after_all_options():
    made = curl(exchange("http://h/v1/x"), base="http://h")

    assert (made or "").endswith("""-- "$TARGET"/v1/x""")


def test_an_address_is_one_address(server, tmp_path: Path):
    url, arrived = server

    run(curl(exchange(f"{url}/[1-3]/{{a,b}}")), tmp_path)

    assert [each.path for each in arrived] == ["/[1-3]/{a,b}"]


@pytest.mark.parametrize("name", ["@/etc/hostname", "", "a b", "…", "a:b"])
def test_what_is_no_name_of_a_header_is_no_command(name: str):
    assert curl(exchange("http://h/", headers=[[name, "x"]])) is None

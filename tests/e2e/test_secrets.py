"""Keys, tokens, passwords and configured headers are in no file and on no line, however they are written."""

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from continuity_conformance.core.urls import public_url
from continuity_conformance.results.redaction import BODY_KEPT, Redactor, redactor_of, url_secrets
from continuity_conformance.target.profile import Profile

KEY = 'sk-"half"/of\\the+key=ü!'
TENANT = "tenant-4711-north"
TOKEN = "control-token-0815"
BASIC = base64.b64encode(b"operator:correct-horse").decode()
PARROT = Path(__file__).parents[1] / "servers" / "parrot.py"
PROFILE = """
principals: {alice: $ALICE, bob: $BOB}
headers: {X-Tenant: $TENANT, X-Gateway-Authorization: $BASIC}
controls: {token: $TOKEN}
limits: {turn_seconds: 5}
"""
ENVIRON = {"ALICE": KEY, "BOB": "bob's key; drop", "TENANT": TENANT, "BASIC": f"Basic {BASIC}", "TOKEN": TOKEN}


@pytest.fixture(scope="module")
def parrot() -> Iterator[str]:
    """A server that repeats every secret it is sent, in every form, in bodies, headers and cookies."""
    with subprocess.Popen([sys.executable, str(PARROT)], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


def forms(secret: str) -> list[str]:
    plain = secret.encode()
    return [
        secret,
        quote(secret, safe=""),
        json.dumps(secret)[1:-1],
        json.dumps(json.dumps(secret))[3:-3],
        base64.b64encode(plain).decode().rstrip("="),
        base64.b64encode(b"Bearer " + plain).decode().rstrip("="),
    ]


SECRETS = (*ENVIRON.values(), BASIC, "correct-horse", "parrots-own-cookie", "parrots-own-token")


@pytest.mark.parametrize("how", ["check", "verbose", "pytest"])
def test_a_server_that_repeats_every_secret_gets_none_into_a_report(continuity, parrot, tmp_path, surroundings, how):
    (tmp_path / "profile.yaml").write_text(PROFILE)
    if how == "pytest":
        command = [sys.executable, "-m", "pytest", "--target", parrot, "--continuity-profile", "profile.yaml"]
        command += ["--continuity-report", "report", "--junitxml", "junit.xml", "ECHO", "DERIVE-01", "SLUG-01"]
        done = subprocess.run(
            command, cwd=tmp_path, env=surroundings | ENVIRON, capture_output=True, text=True, timeout=400, check=False
        )
    else:
        more = ["-v"] if how == "verbose" else []
        selected = ["-k", "ECHO or DERIVE-01 or SLUG-01", *more]
        done = continuity("check", parrot, "--profile", "profile.yaml", "--report", "report", *selected, **ENVIRON)
    files = {
        path: path.read_text("utf-8") for path in tmp_path.rglob("*") if path.name != "profile.yaml" and path.is_file()
    }
    said = [done.stdout, done.stderr, *files.values()]

    assert done.returncode == 1, done.stdout + done.stderr
    assert "***" in files[tmp_path / "report" / "results.json"]
    assert [form for secret in SECRETS for form in forms(secret) if any(form in text for text in said)] == []


def test_a_password_in_the_address_is_nowhere(continuity, url, tmp_path):
    address = url.replace("http://", "http://me:hunter-two@")
    done = continuity("check", f"{address}?key=query-secret", "--area", "ECHO", "--report", "report")
    failed = continuity("check", "http://me:hunter-two@127.0.0.1:9", "--report", "unreachable")
    files = [path.read_text("utf-8") for path in tmp_path.rglob("*") if path.is_file()]
    said = "".join((done.stdout, done.stderr, failed.stdout, failed.stderr, *files))

    assert failed.returncode == 3
    assert "hunter-two" not in said
    assert "query-secret" not in said


def test_a_target_that_does_not_start_does_not_give_its_keys_away(continuity, tmp_path):
    """Its command line has the keys on it, and the message names the command."""
    profile = "name: mine\nprincipals: {alice: $ALICE}\nprocess: {start: [sh, -c, 'echo got $ALICE; exit 3', x-key-of-alice]}\n"
    (tmp_path / "profile.yaml").write_text(profile)
    done = continuity(
        "check", "mine", "--profile", "profile.yaml", "--report", "report", "-k", "ECHO", ALICE="x-key-of-alice"
    )
    said = done.stdout + done.stderr + (tmp_path / "report" / "results.json").read_text()

    assert done.returncode == 4
    assert "got ***" in said
    assert "x-key-of-alice" not in said


@pytest.mark.parametrize("secret", ['a"b\\c/d', "pass word+%", "ключ-123", "0123456789abcdef"])
def test_every_form_of_a_secret_is_hidden(secret: str):
    redactor = Redactor((secret,))

    assert [form for form in forms(secret) if form in redactor.text(f"<{form}>")] == []


def test_what_is_almost_a_key_is_hidden_too():
    redactor = redactor_of(Profile("mine", principals={"alice": "Key-of-alice-17"}))

    assert redactor.text("Bearer Key-of-alice-1, kEY-OF-ALICE-17, Key-of-alice-17x") == "Bearer ***, ***, ***x"


def test_what_is_cut_is_cut_after_it_was_redacted():
    body = "x" * (BODY_KEPT - 3) + "a-secret-key" + "y" * 100

    assert "a-" not in Redactor(("a-secret-key",)).body(body)


def test_a_long_body_says_how_much_is_missing():
    assert Redactor(()).body("x" * (BODY_KEPT + 7)).endswith("… (7 more characters)")


def test_many_header_fields_are_counted_and_not_kept():
    shown = Redactor(()).headers([("X-Many", str(number)) for number in range(150)])

    assert len(shown) == 101
    assert shown[-1] == ["…", "(50 more header fields)"]


def test_the_continuity_header_is_shown_whatever_its_name():
    redactor = redactor_of(Profile("mine", header="X-Session-Token", headers={"X-Short": "eu"}))

    assert redactor.headers([("x-session-token", "continuity-1"), ("X-Other-Token", "t"), ("X-SHORT", "eu")]) == [
        ["x-session-token", "continuity-1"],
        ["X-Other-Token", "***"],
        ["X-SHORT", "***"],
    ]


def test_control_characters_of_a_server_do_nothing_to_a_terminal():
    assert Redactor(()).text("\x1b[2J\x9b1m\u202eabc") == "\\u001b[2J\\u009b1m\\u202eabc"


@pytest.mark.parametrize("address", ["http://[::1", "http://me:pw%21word@[::1"])
def test_an_address_that_is_none_is_no_crash(address: str):
    assert "pw" not in public_url(address) + "".join(set(url_secrets(address)) - {"pw%21word", "pw!word", "me:pw!word"})

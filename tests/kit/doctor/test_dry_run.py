"""A dry run sends nothing and tells all that a visit sends; and whoever gives a key knows where it goes."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable

import pytest
from thread_servers import (
    KEYS,
    Asked,
    Bare,
    Elsewhere,
    Failing,
    Lists,
    Minting,
    Moved,
    Page,
    Shy,
    http_server,
    silent_port,
)

from continuity_conformance.cli.main import main
from continuity_conformance.doctor.dry_run import plan
from continuity_conformance.doctor.state import SurveyState
from continuity_conformance.doctor.survey import dry_run, survey
from continuity_conformance.http.messages import KeyField, Request
from continuity_conformance.suite.release import newest
from continuity_conformance.target.profile import Limits, Profile

RELEASE = newest().requirements
BRIEF = Limits(turn_seconds=5)
KEYLESS = Profile("it", limits=BRIEF)
KEYED = Profile("it", principals={"alice": KEYS["ALICES_KEY"]}, headers={"X-Tenant": "north-4711"}, limits=BRIEF)


@pytest.fixture(autouse=True)
def nothing_asked() -> list[Asked]:
    Page.asked.clear()
    return Page.asked


def visited(url: str, profile: Profile) -> SurveyState:
    return asyncio.run(survey(url, profile, RELEASE))


def must_tell(sent: Iterable[tuple[str, str]], url: str, profile: Profile) -> None:
    """Each of these requests is told, as often as it was sent, and all of them are no more than are said to be sent at most."""
    visits = asyncio.run(dry_run(url, profile, RELEASE))
    told: Counter[tuple[str, str]] = Counter()
    for each in plan(visits):
        told[each.request.method, shape(each.request.path)] += each.times
    counted = Counter((method, shape(path)) for method, path in sent)

    assert counted - told == Counter()
    assert 0 < counted.total() <= max(map(len, visits))


def shape(path: str) -> str:
    """A path without the id at its end."""
    return re.sub(r"(?<=/sessions/).+|(?<=/responses/).+", "ID", path)


def on_the_wire(state: SurveyState) -> list[tuple[str, str]]:
    return [(request.method, request.path) for request, _ in state.transport.exchanges]


@pytest.mark.parametrize("profile", [KEYLESS, KEYED], ids=["without a key", "with a key"])
@pytest.mark.parametrize("kind", [Bare, Shy, Elsewhere, Minting, Lists, Page, Moved, Failing])
def test_all_that_a_small_server_is_asked_is_told(kind, profile, nothing_asked):
    with http_server(kind) as url:
        visited(url, profile)
        asked = [(each.method, each.path) for each in nothing_asked]

        must_tell(asked, url, profile)
        assert len(nothing_asked) == len(asked)


def test_all_that_the_bundled_server_is_asked_is_told(plain, keyed):
    must_tell(on_the_wire(visited(plain, KEYLESS)), plain, KEYLESS)
    must_tell(on_the_wire(visited(keyed, KEYED)), keyed, KEYED)


def test_all_that_a_gateway_is_asked_is_told(behind):
    profile = Profile(
        "it", principals={"alice": KEYS["ALICES_KEY"]}, key_field=KeyField.read("X-Api-Key: {key}"), ca=str(behind.ca)
    )

    must_tell(on_the_wire(visited(behind.url, profile)), behind.url, profile)


def test_all_that_is_asked_after_a_wrong_path_is_told_under_that_path(plain):
    """Without a key the visit goes on where the server is; its requests are those of the dry run, under another address."""
    url = f"{plain}/some/gateway"
    sent = on_the_wire(visited(url, KEYLESS))
    found = sent.index(("GET", "/v1/models")) + 1

    must_tell(sent[:found], url, KEYLESS)
    must_tell(sent[found:], plain, KEYLESS)


def test_a_client_tool_is_tried_with_a_probe_only():
    without, given = (
        asyncio.run(dry_run("http://127.0.0.1:9", Profile("it", probe=probe), RELEASE))
        for probe in ("", "http://127.0.0.1:9/v1")
    )

    assert not any(map(_has_tools, without[0]))
    assert any(map(_has_tools, given[0]))


def _has_tools(request: Request) -> bool:
    return isinstance(request.body, dict) and "tools" in request.body


@pytest.mark.parametrize("kind", [Bare, Lists])
def test_a_key_stays_under_the_address_that_was_given(kind, nothing_asked):
    with http_server(kind) as url:
        state = visited(f"{url}/gateway", KEYED)
    outside = [each for each in nothing_asked if not each.path.startswith("/gateway/v1/")]
    inside = [each for each in nothing_asked if each not in outside]

    assert outside
    assert not [each for each in outside if {"Authorization", "X-Tenant"} & set(each.fields)]
    assert {each.method for each in outside} == {"GET"}
    assert all({"Authorization", "X-Tenant"} <= set(each.fields) for each in inside)
    assert state.findings.exit_code == 3


def test_where_a_key_would_have_to_go_elsewhere_the_address_is_told():
    with http_server(Lists) as url:
        state = visited(f"{url}/gateway", KEYED)

    assert f"there may be one at {url}, where your key was not sent" in str(state.findings.error)
    assert f"continuity doctor {url}" in str(state.findings.error)


def test_a_dry_run_sends_nothing_and_shows_no_secret(capsys, monkeypatch):
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    with silent_port() as (url, listener):
        given = ("--key-env", "ALICES_KEY", "--header", "X-Tenant: $BOBS_KEY")
        code = main(["doctor", f"{url}/gateway", *given, "--dry-run"])
        listener.settimeout(0)
        with pytest.raises(BlockingIOError):
            listener.accept()
    shown = capsys.readouterr().out

    assert code == 0
    assert "Nothing was sent." in shown
    assert f"POST {url}/gateway/v1/chat/completions" in shown
    assert "Authorization: Bearer $ALICES_KEY" in shown
    assert "X-Tenant: $BOBS_KEY" in shown
    assert not [key for key in KEYS.values() if key in shown]

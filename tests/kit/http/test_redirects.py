"""No client of the kit follows a redirect: keys and headers for one server never reach another."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from thread_servers import http_server

from continuity_conformance.checks.support.openai_client import real_client
from continuity_conformance.core.errors import NotStartedError, UnreachableError
from continuity_conformance.core.failure import Unmet
from continuity_conformance.http.client import Transport
from continuity_conformance.http.messages import KeyField, Request
from continuity_conformance.probe.client import RemoteProbe
from continuity_conformance.target.profile import Process, Profile
from continuity_conformance.target.server import start_server

KEY_FIELDS = {"bearer": "Authorization: Bearer {key}", "own field": "X-Api-Key: {key}"}
SMALL_SERVER = Path(__file__).parents[2] / "servers" / "process_server.py"


@contextmanager
def listening(location: str = "") -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server on loopback that redirects everything, or answers `{}`; its URL, and the headers of its requests."""
    arrived: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            arrived.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(307 if location else 200)
            if location:
                self.send_header("Location", location + self.path)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http_server(Handler) as url:
        yield url, arrived


@pytest.fixture
def stranger() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """The server that a redirect leads to."""
    with listening() as served:
        yield served


@pytest.fixture(params=KEY_FIELDS)
def profile(request: pytest.FixtureRequest) -> Profile:
    own: dict[str, Any] = {"headers": {"X-Tenant": "north"}, "principals": {"alice": "key-of-alice"}}
    return Profile("redirecting", key_field=KeyField.read(KEY_FIELDS[request.param]), **own)


def test_the_openai_client_stays(profile: Profile, stranger):
    other, arrived = stranger

    async def play(url: str) -> None:
        context: Any = SimpleNamespace(target=SimpleNamespace(profile=profile), server=SimpleNamespace(url=url))
        async with real_client(SimpleNamespace(context=context)) as client:  # type: ignore[arg-type] # all that it reads
            await client.chat.completions.create(model="default", messages=[{"role": "user", "content": "red"}])

    with listening(other) as (url, asked), pytest.raises(Unmet, match="307"):
        asyncio.run(play(url))

    assert (len(asked), asked[0]["x-tenant"]) == (1, "north")
    assert arrived == []


@pytest.mark.parametrize("value", ["plain", "needs a raw socket \x01"])
def test_requests_of_scenarios_stay(profile: Profile, stranger, value: str):
    other, arrived = stranger

    async def play(url: str) -> int:
        fields = (*profile.request_headers("key-of-alice"), ("X-Value", value))
        request = Request("POST", f"{url}/v1/chat/completions", fields, {})
        async with Transport(5.0) as transport:
            return (await transport.send(request)).status

    with listening(other) as (url, asked):
        assert asyncio.run(play(url)) == 307

    assert len(asked) == 1
    assert arrived == []


def test_the_start_of_a_target_stays(profile: Profile, stranger):
    """Neither the question whether it is ready nor its first turn; a redirected turn is no turn."""
    other, arrived = stranger
    start = (sys.executable, str(SMALL_SERVER), "{port}", f"--redirects={other}")
    started = Profile(
        "redirecting",
        principals=profile.principals,
        headers=profile.headers,
        key_field=profile.key_field,
        process=Process(start, warm_up=10.0),
    )

    async def play() -> None:
        await (await start_server(started, "")).stop()

    with pytest.raises(NotStartedError, match="first turn did not succeed: 307"):
        asyncio.run(play())

    assert arrived == []


def test_questions_to_a_probe_model_stay(stranger):
    other, arrived = stranger

    async def play(url: str) -> None:
        async with RemoteProbe(url) as probe:
            await probe.release("mark")

    with listening(f"{other}/v1") as (url, _), pytest.raises(UnreachableError, match="does not answer"):
        asyncio.run(play(url))

    assert arrived == []

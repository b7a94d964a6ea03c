"""A client of a probe model that runs in another process (`continuity model`)."""

import asyncio
from dataclasses import asdict
from typing import Final, Self

import aiohttp

from continuity_conformance.core.errors import UnreachableError
from continuity_conformance.http.client import IDLE_SECONDS
from continuity_conformance.probe.marks import DEFAULT_PATTERN
from continuity_conformance.probe.reply import ModelCall
from continuity_conformance.probe.script import Script

_CONNECT_SECONDS: Final = 5.0


class RemoteProbe:
    """Has the same methods as `Probe`, over HTTP. For a target that the kit did not start."""

    def __init__(self, url: str, summary: str = DEFAULT_PATTERN) -> None:
        self._summary = (
            "" if summary == DEFAULT_PATTERN else summary
        )  # without one, `continuity model --summary` decides
        self._url = f"{url.rstrip('/').removesuffix('/v1')}/probe"
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(keepalive_timeout=IDLE_SECONDS)
        self._session = aiohttp.ClientSession(connector=connector, raise_for_status=True)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await self._send("PUT", "summary", {"pattern": self._summary})
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
            await self._session.close()
            raise UnreachableError(
                "The probe model that the profile names does not answer.",
                where=self._url,
                do="Start it with `continuity model --port N`.",
            ) from None
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def script(self, mark: str, script: Script) -> None:
        await self._send("PUT", f"scripts/{mark}", asdict(script))

    async def arrived(self, mark: str) -> None:
        await self._send("GET", f"arrived/{mark}")

    async def release(self, mark: str) -> None:
        await self._send("POST", f"release/{mark}")

    async def call(self, number: int) -> ModelCall | None:
        call = await self._send("GET", f"calls/{number}")
        return ModelCall.from_json(call) if isinstance(call, dict) else None

    async def calls(self, marks: frozenset[str]) -> list[ModelCall]:
        query = "&".join(f"mark={mark}" for mark in sorted(marks))
        calls = await self._send("GET", f"calls?{query}")
        return [ModelCall.from_json(call) for call in calls] if isinstance(calls, list) else []

    async def _send(self, method: str, path: str, body: object = None) -> object:
        url = f"{self._url}/{path}"
        async with self._session.request(method, url, json=body, allow_redirects=False) as response:
            if response.status >= 300:  # noqa: PLR2004
                raise aiohttp.ClientError("The probe model redirects.")
            answer: object = await response.json()
            return answer

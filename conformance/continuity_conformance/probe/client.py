"""The probe model in another process (`continuity model`), through its log on HTTP."""

import asyncio
from dataclasses import asdict
from typing import Final, Self

import aiohttp

from continuity_conformance.core.errors import UnreachableError
from continuity_conformance.probe.server import Call, Script

_FIRST_SECONDS: Final = 5.0


class RemoteProbe:
    """The same as `Probe`, for a target that somebody else started."""

    def __init__(self, url: str) -> None:
        self._url = f"{url.rstrip('/').removesuffix('/v1')}/probe"
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(raise_for_status=True)
        try:
            async with asyncio.timeout(_FIRST_SECONDS):
                await self.calls(frozenset())
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
            await self._session.close()
            raise UnreachableError(
                "The probe model of the profile does not answer.",
                where=self._url,
                do="Start it with `continuity model --port N`.",
            ) from None
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def script(self, mark: str, script: Script) -> None:
        await self._ask("PUT", f"scripts/{mark}", asdict(script))

    async def arrived(self, mark: str) -> None:
        await self._ask("GET", f"arrived/{mark}")

    async def release(self, mark: str) -> None:
        await self._ask("POST", f"release/{mark}")

    async def call(self, number: int) -> Call | None:
        found = await self._ask("GET", f"calls/{number}")
        return Call.from_json(found) if isinstance(found, dict) else None

    async def calls(self, marks: frozenset[str]) -> list[Call]:
        query = "&".join(f"mark={mark}" for mark in sorted(marks))
        found = await self._ask("GET", f"calls?{query}")
        return [Call.from_json(call) for call in found] if isinstance(found, list) else []

    async def _ask(self, method: str, path: str, body: object = None) -> object:
        url = f"{self._url}/{path}"
        async with self._session.request(method, url, json=body, allow_redirects=False) as response:
            if response.status >= 300:  # noqa: PLR2004
                raise aiohttp.ClientError("The probe model redirects.")
            answer: object = await response.json()
            return answer

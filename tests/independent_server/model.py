"""The model behind the server: POST {base}/chat/completions, plain or streamed."""

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from defects import bug
from rules import Json, Refusal

FINISHES = ("stop", "length", "tool_calls", "content_filter", "function_call")
BROKEN = (aiohttp.ClientError, OSError, ValueError, LookupError, TypeError, AttributeError)


@dataclass
class Answer:
    content: str = ""
    tool_calls: list[Json] = field(default_factory=list)
    finish: str = "stop"
    usage: Json | None = None

    def message(self) -> Json:
        if self.tool_calls:
            return {"role": "assistant", "content": self.content or None, "tool_calls": self.tool_calls}
        return {"role": "assistant", "content": self.content}


def call_of(given: Json) -> Json:
    function = given.get("function") or {}
    return {"id": given.get("id") or "call_" + secrets.token_hex(12), "type": "function",
            "function": {"name": function.get("name") or "", "arguments": function.get("arguments") or ""}}


def usage_of(given: Any) -> Json | None:
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    return given if isinstance(given, dict) and all(isinstance(given.get(n), int) and given[n] >= 0 for n in names) else None


def failure(status: int = 502) -> Refusal:
    text = {429: "The model has too much to do.", 504: "The model took too long."}.get(status, "The model did not answer.")
    return Refusal(status, "upstream_error", text)


class Model:
    def __init__(self, base: str) -> None:
        self.url = base.rstrip("/") + "/chat/completions"
        self.client: aiohttp.ClientSession | None = None

    async def post(self, payload: Json) -> aiohttp.ClientResponse:
        if self.client is None:  # No limit, so that no session waits for others; no reuse, so that no turn meets a stale connection.
            self.client = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True),
                                                timeout=aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=300))
        response = await self.client.post(self.url, json=payload, allow_redirects=False)
        if response.status != 200:
            response.close()
            raise failure(response.status if response.status in (429, 504) else 502)
        return response

    async def ask(self, payload: Json) -> Answer:
        try:
            async with await self.post(payload) as response:
                data = json.loads(await response.read())
            choice = data["choices"][0]
            content, finish = choice["message"].get("content") or "", choice.get("finish_reason")
            calls = [call_of(c) for c in choice["message"].get("tool_calls") or []]
            if not isinstance(content, str) or not all(c["function"]["name"] for c in calls):
                raise ValueError
            return Answer(content, calls, finish if finish in FINISHES else "stop", usage_of(data.get("usage")))
        except asyncio.TimeoutError:
            raise failure(504) from None
        except BROKEN:
            raise failure() from None

    async def stream(self, payload: Json) -> AsyncGenerator[str | Json | Answer, None]:
        """Pieces of text, pieces of tool calls, and at the end the whole answer."""
        answer, finish = Answer(), None
        calls: dict[int, Json] = {}
        try:
            async with await self.post(payload) as response:
                rest = b""
                async for chunk in response.content.iter_any():
                    if bug("utf8-split"):
                        chunk = chunk.decode("utf-8", "ignore").encode()
                    *lines, rest = (rest + chunk).split(b"\n")
                    if bug("sse-splitlines"):
                        lines = [part.encode() for line in lines for part in line.decode().splitlines()]
                    for line in lines:
                        if not line.startswith(b"data:") or line[5:].strip() == b"[DONE]":
                            continue
                        try:
                            data = json.loads(line[5:])
                        except ValueError:
                            if bug("sse-splitlines"):
                                continue
                            raise
                        answer.usage = usage_of(data.get("usage")) or answer.usage
                        for choice in data["choices"][:1]:
                            delta, finish = choice.get("delta") or {}, choice.get("finish_reason") or finish
                            if delta.get("content"):
                                answer.content += delta["content"]
                                yield delta["content"]
                            for piece in delta.get("tool_calls") or []:
                                at, more = piece["index"], call_of(piece)
                                if at in calls:
                                    growing = calls[[*calls][-1] if bug("stream-args-to-last-call") else at]
                                    growing["function"]["arguments"] += more["function"]["arguments"]
                                    yield {"index": at, "function": {"arguments": more["function"]["arguments"]}}
                                else:
                                    calls[at] = more
                                    yield {"index": at, **more, "function": {**more["function"]}}
            if finish is None or not all(c["function"]["name"] for c in calls.values()):
                raise ValueError
        except asyncio.TimeoutError:
            raise failure(504) from None
        except BROKEN:
            raise failure() from None
        answer.tool_calls = [calls[at] for at in sorted(calls)]
        if bug("stream-same-name-calls"):
            answer.tool_calls = list({c["function"]["name"]: c for c in answer.tool_calls}.values())
        answer.finish = finish if finish in FINISHES else "stop"
        yield answer

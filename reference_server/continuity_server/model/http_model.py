"""A model behind an OpenAI-compatible URL: POST {URL}/chat/completions, plain or streamed."""

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import aiohttp

from continuity_server.model.types import Call, ModelFailedError, OnText, Reply, Usage

_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=600)
_TOO_MANY_REQUESTS: Final = 429
_END: Final = b"[DONE]"
_LARGEST_ANSWER: Final = 16 * 1024 * 1024


class HttpModel:
    """A model behind an OpenAI-compatible URL."""

    def __init__(self, url: str, key: str | None = None) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._url = f"{url.rstrip('/')}/chat/completions"
        self._client = aiohttp.ClientSession(timeout=_TIMEOUT, headers=headers, connector=aiohttp.TCPConnector(limit=0))

    async def close(self) -> None:
        await self._client.close()

    async def ask(self, call: Call, on_text: OnText | None = None) -> Reply:
        try:
            async with self._client.post(self._url, json=call.body(stream=on_text is not None)) as answer:
                if answer.status != 200:  # noqa: PLR2004 - anything but OK is a failure
                    limited = answer.status == _TOO_MANY_REQUESTS
                    raise ModelFailedError(f"The model answered with status {answer.status}.", rate_limited=limited)
                return await (_plain(answer) if on_text is None else self._streamed(answer, on_text))
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ModelFailedError("The model could not be reached, or broke off its answer.") from error
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise ModelFailedError("The model's answer is no chat completion.") from error

    async def _streamed(self, answer: aiohttp.ClientResponse, on_text: OnText) -> Reply:
        texts: list[str] = []
        calls: dict[int, dict[str, Any]] = {}
        usage, finished, cut, size = Usage(), False, False, 0
        async for chunk in self._chunks(answer):
            usage = _usage(chunk) if chunk.get("usage") else usage
            for choice in chunk.get("choices") or []:
                delta = choice.get("delta") or {}
                finished = finished or choice.get("finish_reason") is not None
                cut = cut or _is_cut(choice)
                cut = cut or _is_cut(choice)
                called = delta.get("tool_calls") or []
                _gather(calls, called)
                text = delta.get("content") or ""
                size += len(text) + sum(len(json.dumps(call)) for call in called)
                _check_size(size)
                if text:
                    texts.append(text)
                    await on_text(text)
        if not finished:
            raise ModelFailedError("The model broke off its answer.")
        return Reply("".join(texts), tuple(_call(calls[index]) for index in sorted(calls)), usage, cut)

    async def _chunks(self, answer: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
        async for line in answer.content:
            data = line.strip().removeprefix(b"data:").strip()
            chunk = self._chunk(data) if line.startswith(b"data:") else {}
            if "error" in chunk:
                raise ModelFailedError("The model failed in the middle of its answer.")
            if chunk:
                yield chunk

    def _chunk(self, data: bytes) -> dict[str, Any]:
        """Read an event. HISTORY-08: the end marker says nothing of how the answer ended, so it is no chunk."""
        chunk: dict[str, Any] = {} if data == _END else json.loads(data)
        return chunk


async def _plain(answer: aiohttp.ClientResponse) -> Reply:
    body = json.loads(await _whole(answer))
    message = body["choices"][0]["message"]
    calls = tuple(_call(call) for call in message.get("tool_calls") or [])
    return Reply(message.get("content") or "", calls, _usage(body), _is_cut(body["choices"][0]))


async def _whole(answer: aiohttp.ClientResponse) -> bytes:
    """Read an answer, of a bounded size."""
    pieces, size = [], 0
    async for piece in answer.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        _check_size(size)
    return b"".join(pieces)


def _check_size(size: int) -> None:
    if size > _LARGEST_ANSWER:
        raise ModelFailedError("The model's answer is too large.")


def _gather(calls: dict[int, dict[str, Any]], deltas: list[dict[str, Any]]) -> None:
    """Put the pieces of streamed tool calls together."""
    for delta in deltas:
        call = calls.setdefault(delta.get("index", 0), {"id": "", "function": {"name": "", "arguments": ""}})
        call["id"] = delta.get("id") or call["id"]
        for name in ("name", "arguments"):
            call["function"][name] += (delta.get("function") or {}).get(name) or ""


def _call(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    named = {"name": str(function["name"]), "arguments": str(function.get("arguments") or "")}
    return {"id": str(call["id"]), "type": "function", "function": named}


def _is_cut(choice: dict[str, Any]) -> bool:
    return choice.get("finish_reason") == "length"


def _usage(body: dict[str, Any]) -> Usage:
    usage = body.get("usage") or {}
    return Usage(int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0))

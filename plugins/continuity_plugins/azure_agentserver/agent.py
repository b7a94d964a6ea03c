"""A small agent on azure-ai-agentserver-responses: the whole conversation goes to the model, and what the model writes is the answer.

The library keeps the conversations and answers all requests. The kit does not import this file: it runs in the environment of the library. `PORT` and
`MODEL_URL` say where it listens and where its model is.
"""

import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import httpx
from azure.ai.agentserver.responses import (  # type: ignore[import-not-found] # only the environment of the target has it
    ResponsesAgentServerHost,
    ResponsesServerOptions,
    TextResponse,
)

_MODEL = "probe"
_END = "data: [DONE]"
_STOP_SECONDS = 2


async def answer(request: Mapping[str, Any], context: Any, _cancelled: object) -> TextResponse:
    """One turn: everything that the library knows of the conversation, then what the client says now."""
    items = [*await context.get_history(), *await context.get_input_items()]
    return TextResponse(context, request, text=_stream(_messages(request.get("instructions"), items)))


def _messages(instructions: str | None, items: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    first = [{"role": "system", "content": instructions}] if instructions else []
    said = (item for item in items if item.get("type", "message") == "message")
    return [*first, *({"role": item["role"], "content": _text(item.get("content"))} for item in said)]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or [])


async def _lines(model: httpx.Response) -> AsyncIterator[str]:
    """The lines of an event stream. They end at a line feed: `aiter_lines` would also cut a text at U+2028."""
    rest = b""
    async for piece in model.aiter_bytes():
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.decode()


async def _stream(messages: list[dict[str, str]]) -> AsyncIterator[str]:
    """The model's text, piece by piece. An answer that breaks off is an error, not a short answer."""
    body = {"model": _MODEL, "stream": True, "messages": messages}
    url = f"{os.environ['MODEL_URL']}/chat/completions"
    async with (
        httpx.AsyncClient(timeout=600, trust_env=False) as client,
        client.stream("POST", url, json=body) as model,
    ):
        if model.is_error:
            raise RuntimeError(f"the model answered {model.status_code}")
        finished = False
        async for line in _lines(model):
            if line == _END and finished:
                return
            if line.startswith("data: {"):
                for choice in json.loads(line.removeprefix("data: "))["choices"]:
                    finished = finished or choice.get("finish_reason") is not None
                    if piece := choice["delta"].get("content"):
                        yield piece
    raise RuntimeError("the model's answer broke off")


if __name__ == "__main__":
    options = ResponsesServerOptions(default_model=_MODEL, shutdown_grace_period_seconds=_STOP_SECONDS)
    host = ResponsesAgentServerHost(prefix="/v1", options=options, graceful_shutdown_timeout=_STOP_SECONDS)
    host.response_handler(answer)
    host.run(host="127.0.0.1", port=int(os.environ["PORT"]))
